# The targets that programs link: wanamaker::core and, where their dependencies are found, the
# others. None carries compiler flags.

set(wanamaker_components "")
set(wanamaker_missing "")

# wanamaker_component(<name> [<target it needs>...]): defines wanamaker::<name> if all are there.
macro(wanamaker_component name)
  set(wanamaker_lacks "")
  foreach(needed ${ARGN})
    if(NOT TARGET ${needed})
      list(APPEND wanamaker_lacks ${needed})
    endif()
  endforeach()
  if(wanamaker_lacks)
    message(STATUS "wanamaker::${name} is left out: ${wanamaker_lacks} not found")
    list(APPEND wanamaker_missing ${wanamaker_lacks})
  else()
    add_library(wanamaker_${name} INTERFACE)
    add_library(wanamaker::${name} ALIAS wanamaker_${name})
    set_target_properties(wanamaker_${name} PROPERTIES EXPORT_NAME ${name})
    foreach(needed ${ARGN})
      # Our own by their plain names, so that the exported package names them right.
      string(REPLACE "wanamaker::" "wanamaker_" needed ${needed})
      target_link_libraries(wanamaker_${name} INTERFACE ${needed})
    endforeach()
    list(APPEND wanamaker_components ${name})
  endif()
endmacro()

wanamaker_component(core Threads::Threads)
target_compile_features(wanamaker_core INTERFACE cxx_std_20)
target_include_directories(wanamaker_core INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

wanamaker_component(eigen wanamaker::core Eigen3::Eigen)
wanamaker_component(blas wanamaker::eigen)
wanamaker_component(xtensor wanamaker::core xtensor)
wanamaker_component(io wanamaker::core nlohmann_json::nlohmann_json)
wanamaker_component(text wanamaker::io PCRE2::8BIT utf8proc::utf8proc)
wanamaker_component(study wanamaker::eigen wanamaker::xtensor wanamaker::io wanamaker::text)

# gzip and zstd files are read where the libraries are, as below.
if(TARGET wanamaker_text)
  target_link_libraries(wanamaker_text INTERFACE
    $<TARGET_NAME_IF_EXISTS:ZLIB::ZLIB> $<TARGET_NAME_IF_EXISTS:ZSTD::ZSTD>)
  target_compile_definitions(wanamaker_text INTERFACE
    $<$<TARGET_EXISTS:ZLIB::ZLIB>:WANAMAKER_HAS_ZLIB=1>
    $<$<TARGET_EXISTS:ZSTD::ZSTD>:WANAMAKER_HAS_ZSTD=1>)
endif()

# A CBLAS is used where there is one, here and on the machine that an installed package is used on.
if(TARGET wanamaker_blas)
  target_link_libraries(wanamaker_blas INTERFACE
    $<TARGET_NAME_IF_EXISTS:CBLAS::CBLAS> $<TARGET_NAME_IF_EXISTS:ONEDNN::ONEDNN>)
  target_compile_definitions(wanamaker_blas INTERFACE
    $<$<TARGET_EXISTS:CBLAS::CBLAS>:WANAMAKER_HAS_CBLAS=1>
    $<$<TARGET_EXISTS:ONEDNN::ONEDNN>:WANAMAKER_HAS_ONEDNN=1>)
endif()

# All of them.
add_library(wanamaker_wanamaker INTERFACE)
add_library(wanamaker::wanamaker ALIAS wanamaker_wanamaker)
set_target_properties(wanamaker_wanamaker PROPERTIES EXPORT_NAME wanamaker)
foreach(component IN LISTS wanamaker_components)
  target_link_libraries(wanamaker_wanamaker INTERFACE wanamaker_${component})
endforeach()

# Apart from these, since programs that use no device need no CUDA: what nvcc compiles. The headers
# call constexpr functions of the standard library in kernels.
if(TARGET CUDA::cublas)
  add_library(wanamaker_cuda INTERFACE)
  add_library(wanamaker::cuda ALIAS wanamaker_cuda)
  set_target_properties(wanamaker_cuda PROPERTIES EXPORT_NAME cuda)
  target_link_libraries(wanamaker_cuda INTERFACE wanamaker_core CUDA::cudart CUDA::cublas)
  target_compile_options(wanamaker_cuda INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  list(APPEND wanamaker_components cuda)
elseif(WANAMAKER_CUDA STREQUAL "AUTO")
  message(STATUS "wanamaker::cuda is left out: CUDA not found")
endif()
