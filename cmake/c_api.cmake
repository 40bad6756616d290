# The C interface (include/wanamaker.h) as a shared library, wanamaker::c. It needs Eigen and
# nlohmann/json to compile, and who links it needs neither.
if(NOT TARGET wanamaker_eigen OR NOT TARGET wanamaker_io)
  message(FATAL_ERROR "wanamaker::c needs Eigen and nlohmann/json: install them, or turn off "
                      "WANAMAKER_BUILD_C_API")
endif()

file(STRINGS include/wanamaker.h c_abi REGEX "#define WANAMAKER_C_ABI ")
string(REGEX REPLACE "[^0-9]+" "" c_abi "${c_abi}")

add_library(wanamaker_c SHARED include/wanamaker.cpp)
add_library(wanamaker::c ALIAS wanamaker_c)
target_link_libraries(wanamaker_c PRIVATE wanamaker_eigen wanamaker_io
                      $<TARGET_NAME_IF_EXISTS:wanamaker_warnings>)
target_include_directories(wanamaker_c INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(wanamaker_c PROPERTIES
  EXPORT_NAME c OUTPUT_NAME wanamaker VERSION ${PROJECT_VERSION} SOVERSION ${c_abi}
  CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
