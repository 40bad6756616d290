# What the components stand on. Everything is looked for and nothing is required here: a component
# whose dependency is missing is left out (cmake/components.cmake).

list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})

# find_package whose imported targets a parent project sees too: it links them through ours.
macro(wanamaker_find)
  get_property(wanamaker_before DIRECTORY PROPERTY IMPORTED_TARGETS)
  find_package(${ARGN} QUIET)
  get_property(wanamaker_found DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(REMOVE_ITEM wanamaker_found ${wanamaker_before})
  foreach(wanamaker_target IN LISTS wanamaker_found)
    set_property(TARGET ${wanamaker_target} PROPERTY IMPORTED_GLOBAL TRUE)
  endforeach()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
wanamaker_find(Threads)
wanamaker_find(Eigen3 CONFIG)
wanamaker_find(xtensor CONFIG)
wanamaker_find(nlohmann_json CONFIG)
wanamaker_find(PCRE2 MODULE)
wanamaker_find(utf8proc MODULE)
wanamaker_find(ZLIB MODULE)
wanamaker_find(ZSTD MODULE)
if(WANAMAKER_BLAS)
  wanamaker_find(CBLAS MODULE)
endif()
if(WANAMAKER_ONEDNN)
  wanamaker_find(ONEDNN MODULE)
endif()
# ON: required; AUTO: used where it is found.
if(WANAMAKER_CUDA STREQUAL "AUTO")
  wanamaker_find(CUDAToolkit 12)
elseif(WANAMAKER_CUDA)
  wanamaker_find(CUDAToolkit 12 REQUIRED)
endif()
