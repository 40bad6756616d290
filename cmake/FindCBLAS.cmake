# Finds any library with the C interface of BLAS, and proves it by linking cblas_sgemm.
# Set CBLAS_LIBRARIES and CBLAS_INCLUDE_DIR to choose one; otherwise the first of: OpenBLAS, BLIS,
# FlexiBLAS, a cblas package (by pkg-config), whatever FindBLAS finds (honouring BLA_VENDOR).
# Defines CBLAS_FOUND and the target CBLAS::CBLAS, which carries WANAMAKER_CBLAS_INDEX_BITS, the
# width of the integers in cblas.h (32 or 64).
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
include(FindPackageHandleStandardArgs)

# Sets CBLAS_INDEX_BITS if a program that includes cblas.h links with these libraries.
function(_cblas_try libraries include_dirs)
  if(NOT libraries)
    return()
  endif()
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_LIBRARIES ${libraries})
  set(CMAKE_REQUIRED_INCLUDES ${include_dirs})
  foreach(bits 32 64)
    unset(CBLAS_LINKS CACHE)
    check_cxx_source_compiles("
      #include <cblas.h>
      template <class R, class A, class B, class C, class I, class... T>
      constexpr int width(R (*)(A, B, C, I, T...)) { return 8 * int(sizeof(I)); }
      static_assert(width(&cblas_sgemm) == ${bits}, \"\");
      int main() {
        const float a = 1;
        float c = 0;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &c, 1);
        return c == 1 ? 0 : 1;
      }" CBLAS_LINKS)
    if(CBLAS_LINKS)
      set(CBLAS_LIBRARIES "${libraries}" CACHE STRING "Libraries of the CBLAS that is used")
      set(CBLAS_INCLUDE_DIR "${include_dirs}" CACHE STRING "Folder of its cblas.h, if not standard")
      set(CBLAS_INDEX_BITS ${bits} CACHE INTERNAL "Width of the integers in cblas.h")
      break()
    endif()
  endforeach()
  unset(CBLAS_LINKS CACHE)
  cmake_pop_check_state()
endfunction()

if(NOT CBLAS_INDEX_BITS)
  if(CBLAS_LIBRARIES)
    _cblas_try("${CBLAS_LIBRARIES}" "${CBLAS_INCLUDE_DIR}")
  else()
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND AND NOT BLA_VENDOR)
      foreach(package openblas blis flexiblas cblas)
        if(NOT CBLAS_INDEX_BITS)
          pkg_check_modules(PC_CBLAS_${package} QUIET ${package})
          _cblas_try("${PC_CBLAS_${package}_LINK_LIBRARIES}"
                     "${PC_CBLAS_${package}_INCLUDE_DIRS}")
        endif()
      endforeach()
    endif()
    if(NOT CBLAS_INDEX_BITS)
      find_package(BLAS QUIET)
      find_path(CBLAS_HEADER_DIR cblas.h PATH_SUFFIXES openblas)
      mark_as_advanced(CBLAS_HEADER_DIR)
      if(CBLAS_HEADER_DIR)
        _cblas_try("${BLAS_LIBRARIES}" "${CBLAS_HEADER_DIR}")
      endif()
    endif()
  endif()
endif()
mark_as_advanced(CBLAS_LIBRARIES CBLAS_INCLUDE_DIR)

find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARIES CBLAS_INDEX_BITS)
if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS INTERFACE IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    INTERFACE_LINK_LIBRARIES "${CBLAS_LIBRARIES}"
    INTERFACE_INCLUDE_DIRECTORIES "${CBLAS_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS WANAMAKER_CBLAS_INDEX_BITS=${CBLAS_INDEX_BITS})
endif()
