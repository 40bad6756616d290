# Builds and runs the project in consumer/ that uses wanamaker in the way WAY:
#   install       find_package of an installed tree that was moved elsewhere
#   subdirectory  add_subdirectory
#   fetchcontent  FetchContent from a local folder; no CBLAS, zlib or libzstd to be found
#   bare          add_subdirectory where nothing but a compiler is installed
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
endfunction()

set(settings "")
if(WAY STREQUAL "install")
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staged)
  file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/prefix)
  file(GLOB_RECURSE installed ${WORK_DIR}/prefix/*.cmake)
  foreach(file IN LISTS installed)
    file(READ ${file} text)
    foreach(path ${SOURCE_DIR} ${BUILD_DIR} ${WORK_DIR})
      string(FIND "${text}" "${path}" place)
      if(NOT place EQUAL -1)
        message(FATAL_ERROR "${file} holds the path ${path}")
      endif()
    endforeach()
  endforeach()
  list(APPEND settings -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
elseif(WAY STREQUAL "fetchcontent")
  set(absent CBLAS ONEDNN ZLIB ZSTD)
elseif(WAY STREQUAL "bare")
  set(absent CBLAS ONEDNN Eigen3 xtensor nlohmann_json PCRE2 utf8proc PkgConfig ZLIB ZSTD)
endif()
foreach(package IN LISTS absent)
  list(APPEND settings -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/packaging/consumer -B ${WORK_DIR}/build
    -G ${GENERATOR} -D WAY=${WAY} -D WANAMAKER_SOURCE=${SOURCE_DIR}
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${settings})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/build --output-on-failure --no-tests=error)
