# Builds and runs the project in consumer/ that uses wanamaker in the way WAY:
#   install       find_package of an installed tree that was moved elsewhere
#   subdirectory  add_subdirectory
#   fetchcontent  FetchContent from a local folder; no CBLAS, zlib or libzstd to be found
#   deb           find_package of an unpacked Debian package, whose dependencies are looked at too
#   libraries     find_package of a tree installed with the two libraries that are compiled: a C
#                 program links one, a C++ program the other
#   bare          add_subdirectory where nothing but a compiler is installed
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

include(${CMAKE_CURRENT_LIST_DIR}/../execute.cmake)

# Fails where an installed CMake file names a folder of this machine.
function(require_no_paths_in folder)
  file(GLOB_RECURSE installed ${folder}/*.cmake)
  if(NOT installed)
    message(FATAL_ERROR "no CMake package in ${folder}")
  endif()
  foreach(file IN LISTS installed)
    file(READ ${file} text)
    foreach(path ${SOURCE_DIR} ${BUILD_DIR} ${WORK_DIR})
      string(FIND "${text}" "${path}" place)
      if(NOT place EQUAL -1)
        message(FATAL_ERROR "${file} holds the path ${path}")
      endif()
    endforeach()
  endforeach()
endfunction()

# Makes the Debian package and unpacks it to ${WORK_DIR}/prefix. It must depend on what bootstrap.sh
# installs, hold headers and nothing that was built.
function(unpack_debian_package)
  run(${CMAKE_CPACK_COMMAND} -G DEB --config ${BUILD_DIR}/CPackConfig.cmake -B ${WORK_DIR}/deb)
  file(GLOB package ${WORK_DIR}/deb/*.deb)
  execute_process(COMMAND ${dpkg_deb} --field ${package} OUTPUT_VARIABLE fields)
  file(READ ${SOURCE_DIR}/cmake/bootstrap.sh bootstrap)
  foreach(field "Package: libwanamaker-dev" "Architecture: all")
    if(NOT fields MATCHES "(^|\n)${field}\n")
      message(FATAL_ERROR "no '${field}' in the package's fields:\n${fields}")
    endif()
  endforeach()
  foreach(field Depends Recommends)
    string(REGEX MATCH "\n${field}: ([^\n]+)" line "${fields}")
    string(REGEX REPLACE "( [|] [^,]+)|," "" names "${CMAKE_MATCH_1}")
    separate_arguments(names)
    list(LENGTH names count)
    if(count LESS 4)
      message(FATAL_ERROR "${field}: ${names}")
    endif()
    foreach(name IN LISTS names)
      if(NOT bootstrap MATCHES "[ (]${name}[ )\n]")
        message(FATAL_ERROR "${field} names ${name}, which bootstrap.sh does not install")
      endif()
    endforeach()
  endforeach()
  run(${dpkg_deb} --extract ${package} ${WORK_DIR}/unpacked)
  file(RENAME ${WORK_DIR}/unpacked/usr ${WORK_DIR}/prefix)
  file(GLOB_RECURSE others LIST_DIRECTORIES false RELATIVE ${WORK_DIR}/prefix ${WORK_DIR}/prefix/*)
  list(FILTER others EXCLUDE REGEX
       "^(include/wanamaker/.*[.](hpp|cuh)|include/wanamaker([.]h|[.]cpp|_compiled[.]cpp)|share/cmake/wanamaker/.*[.]cmake|share/doc/.*LICENSE)$")
  if(others)
    message(FATAL_ERROR "the package holds ${others}")
  endif()
endfunction()

set(settings "")
if(WAY STREQUAL "install")
  run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staged)
  file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/prefix)
elseif(WAY STREQUAL "deb")
  find_program(dpkg_deb dpkg-deb)
  if(NOT dpkg_deb)
    message("skipped: dpkg-deb is not installed")
    return()
  endif()
  unpack_debian_package()
elseif(WAY STREQUAL "libraries")
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/library -G ${GENERATOR}
      -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
      -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D WANAMAKER_BUILD_C_API=ON
      -D WANAMAKER_BUILD_COMPILED=ON
      -D WANAMAKER_BUILD_TESTS=OFF -D WANAMAKER_BUILD_EXAMPLES=OFF)
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/library)
  run(${CMAKE_COMMAND} --install ${WORK_DIR}/library --prefix ${WORK_DIR}/staged)
  file(RENAME ${WORK_DIR}/staged ${WORK_DIR}/prefix)
elseif(WAY STREQUAL "fetchcontent")
  set(absent CBLAS ONEDNN ZLIB ZSTD)
elseif(WAY STREQUAL "bare")
  set(absent CBLAS ONEDNN Eigen3 xtensor nlohmann_json PCRE2 utf8proc PkgConfig ZLIB ZSTD)
endif()
if(EXISTS ${WORK_DIR}/prefix)
  require_no_paths_in(${WORK_DIR}/prefix)
  list(APPEND settings -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
endif()
foreach(package IN LISTS absent)
  list(APPEND settings -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/packaging/consumer -B ${WORK_DIR}/build
    -G ${GENERATOR} -D WAY=${WAY} -D WANAMAKER_SOURCE=${SOURCE_DIR}
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${settings})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/build --output-on-failure --no-tests=error)
