# The functions that programs use most, compiled once: wanamaker::compiled. Who links it compiles a
# program in half the time; the headers are the same.
if(NOT TARGET wanamaker_blas OR NOT TARGET wanamaker_text)
  message(FATAL_ERROR "wanamaker::compiled needs Eigen, nlohmann/json, PCRE2 and utf8proc: install "
                      "them, or turn off WANAMAKER_BUILD_COMPILED")
endif()

add_library(wanamaker_compiled STATIC include/wanamaker_compiled.cpp)
add_library(wanamaker::compiled ALIAS wanamaker_compiled)
target_link_libraries(wanamaker_compiled PUBLIC wanamaker_blas wanamaker_text)
target_compile_definitions(wanamaker_compiled INTERFACE WANAMAKER_COMPILED=1)
set_target_properties(wanamaker_compiled PROPERTIES
  EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
if(TARGET wanamaker_warnings)
  target_compile_options(wanamaker_compiled PRIVATE
    $<TARGET_PROPERTY:wanamaker_warnings,INTERFACE_COMPILE_OPTIONS>)
endif()
