# Finds oneDNN for its matrix product on the CPU, and the OpenMP runtime by which it is kept on one
# thread. Its own CMake files are not used: they demand OpenCL wherever the library was built with
# it, which the CPU part does not need.
# Defines ONEDNN_FOUND and the target ONEDNN::ONEDNN.
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
include(FindPackageHandleStandardArgs)

find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(ONEDNN_LIBRARY dnnl)
# By its run-time name too: distributions keep the development link inside g++'s own folder.
find_library(ONEDNN_OPENMP_LIBRARY NAMES gomp libgomp.so.1 iomp5 omp)
mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY ONEDNN_OPENMP_LIBRARY)
if(ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY AND ONEDNN_OPENMP_LIBRARY)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_LIBRARIES ${ONEDNN_LIBRARY} ${ONEDNN_OPENMP_LIBRARY})
  set(CMAKE_REQUIRED_INCLUDES ${ONEDNN_INCLUDE_DIR})
  check_cxx_source_compiles("
    #include <oneapi/dnnl/dnnl.h>
    extern \"C\" void omp_set_num_threads(int);
    int main() {
      const float a = 1;
      float c = 0;
      omp_set_num_threads(1);
      return dnnl_sgemm('N', 'N', 1, 1, 1, 1, &a, 1, &a, 1, 0, &c, 1) == dnnl_success ? 0 : 1;
    }" ONEDNN_LINKS)
  cmake_pop_check_state()
endif()

find_package_handle_standard_args(ONEDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_OPENMP_LIBRARY
                                  ONEDNN_INCLUDE_DIR ONEDNN_LINKS)
if(ONEDNN_FOUND AND NOT TARGET ONEDNN::ONEDNN)
  add_library(ONEDNN::ONEDNN UNKNOWN IMPORTED)
  set_target_properties(ONEDNN::ONEDNN PROPERTIES
    IMPORTED_LOCATION "${ONEDNN_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${ONEDNN_OPENMP_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ONEDNN_INCLUDE_DIR}")
endif()
