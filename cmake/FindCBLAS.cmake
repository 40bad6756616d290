# Finds any library with the C interface of BLAS, and proves it by linking cblas_sgemm.
# Set CBLAS_LIBRARIES and CBLAS_INCLUDE_DIR to choose one; otherwise the first of: OpenBLAS, BLIS,
# FlexiBLAS, a cblas package (by pkg-config), whatever FindBLAS finds (honouring BLA_VENDOR).
# Defines CBLAS_FOUND and the target CBLAS::CBLAS.
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
include(FindPackageHandleStandardArgs)

# Sets CBLAS_LINKS, and the cache variables, if a program with these libraries links.
function(_cblas_try libraries include_dir)
  if(CBLAS_LINKS OR NOT libraries)
    return()
  endif()
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_LIBRARIES ${libraries})
  set(CMAKE_REQUIRED_INCLUDES ${include_dir})
  unset(CBLAS_LINKS CACHE)
  check_cxx_source_compiles("
    extern \"C\" {
    #include <cblas.h>
    }
    int main() {
      const float a = 1;
      float c = 0;
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &c, 1);
      return c == 1 ? 0 : 1;
    }" CBLAS_LINKS)
  cmake_pop_check_state()
  if(CBLAS_LINKS)
    set(CBLAS_LIBRARIES "${libraries}" CACHE STRING "Libraries of the CBLAS that is used")
    set(CBLAS_INCLUDE_DIR "${include_dir}" CACHE STRING "Folder of its cblas.h, if not standard")
  endif()
endfunction()

if(CBLAS_LIBRARIES)
  _cblas_try("${CBLAS_LIBRARIES}" "${CBLAS_INCLUDE_DIR}")
endif()
if(NOT CBLAS_LINKS AND NOT CBLAS_LIBRARIES AND NOT BLA_VENDOR)
  find_package(PkgConfig QUIET)
  foreach(package openblas blis flexiblas cblas)
    if(PkgConfig_FOUND AND NOT CBLAS_LINKS)
      pkg_check_modules(PC_CBLAS_${package} QUIET ${package})
      _cblas_try("${PC_CBLAS_${package}_LINK_LIBRARIES}" "${PC_CBLAS_${package}_INCLUDE_DIRS}")
    endif()
  endforeach()
endif()
if(NOT CBLAS_LINKS AND NOT CBLAS_LIBRARIES)
  find_package(BLAS QUIET)
  find_path(CBLAS_HEADER_DIR cblas.h PATH_SUFFIXES openblas)
  mark_as_advanced(CBLAS_HEADER_DIR)
  if(CBLAS_HEADER_DIR)
    _cblas_try("${BLAS_LIBRARIES}" "${CBLAS_HEADER_DIR}")
  endif()
endif()
mark_as_advanced(CBLAS_LIBRARIES CBLAS_INCLUDE_DIR)

find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARIES CBLAS_LINKS)
if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS INTERFACE IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    INTERFACE_LINK_LIBRARIES "${CBLAS_LIBRARIES}"
    INTERFACE_INCLUDE_DIRECTORIES "${CBLAS_INCLUDE_DIR}")
endif()
