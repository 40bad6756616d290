# Settings of our own tests, programs and benchmarks; none of them reaches a consumer.

if(wanamaker_missing)
  list(REMOVE_DUPLICATES wanamaker_missing)
  list(JOIN wanamaker_missing ", " wanamaker_missing)
  message(FATAL_ERROR "wanamaker's tests and programs need ${wanamaker_missing}. Install them with "
    "`cmake/bootstrap.sh deps`, or turn off WANAMAKER_BUILD_TESTS, WANAMAKER_BUILD_EXAMPLES and "
    "WANAMAKER_BUILD_BENCHMARKS.")
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

if(WANAMAKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WANAMAKER_CCACHE_PROGRAM ccache)
  mark_as_advanced(WANAMAKER_CCACHE_PROGRAM)
  if(WANAMAKER_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${WANAMAKER_CCACHE_PROGRAM})
  endif()
endif()

add_library(wanamaker_warnings INTERFACE)
add_library(wanamaker::warnings ALIAS wanamaker_warnings)
target_compile_options(wanamaker_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  $<$<BOOL:${WANAMAKER_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns at -O2 and above of every "text" + std::string (its bug 105651), and of moved
  # aggregates that it takes for uninitialised.
  target_compile_options(wanamaker_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++'s flow analysis does not see through the sanitizers' code.
  target_compile_options(wanamaker_warnings INTERFACE -Wno-maybe-uninitialized)
endif()

# Data that tests look for outside the repository; they skip where it is missing.
set(shared_data "")
if(EXISTS ${PROJECT_SOURCE_DIR}/../shared/data)
  get_filename_component(shared_data ${PROJECT_SOURCE_DIR}/../shared/data ABSOLUTE)
endif()
set(WANAMAKER_SHARED_DATA "${shared_data}" CACHE PATH "Folder of the larger test data, or empty")

# wanamaker_own_target(<target>): everything linked, our warnings.
function(wanamaker_own_target target)
  target_link_libraries(${target} PRIVATE wanamaker_wanamaker wanamaker_warnings)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# wanamaker_compiled_only(<target>): for sources whose compilation is the test; what they run is
# tested elsewhere. Sanitizers and optimisation would only make it slow.
function(wanamaker_compiled_only target)
  target_compile_options(${target} PRIVATE -O0)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
  endif()
endfunction()

# wanamaker_optimise_kernels(<target>): where WANAMAKER_OPTIMISED_KERNELS is on, its kernels are the
# optimised ones of tests/optimised, and the rest is compiled as the build type says. The options of
# a linker come before objects; the first copy of a weak function is the one that it keeps.
option(WANAMAKER_OPTIMISED_KERNELS "In a build without optimisation, optimise the kernels" OFF)
mark_as_advanced(WANAMAKER_OPTIMISED_KERNELS)
if(WANAMAKER_OPTIMISED_KERNELS)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/optimised/*.cpp)
  add_library(wanamaker_optimised_kernels OBJECT ${kernels})
  wanamaker_own_target(wanamaker_optimised_kernels)
  target_include_directories(wanamaker_optimised_kernels PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(wanamaker_optimised_kernels PRIVATE -O1)
endif()
function(wanamaker_optimise_kernels target)
  if(WANAMAKER_OPTIMISED_KERNELS)
    set(objects $<TARGET_OBJECTS:wanamaker_optimised_kernels>)
    target_link_options(${target} PRIVATE ${objects})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${objects})
    add_dependencies(${target} wanamaker_optimised_kernels)
  endif()
endfunction()

# What our own sources for devices are compiled with; nvcc is called as it is, since CMake's language
# CUDA would look for a device's compiler in every configuration.
set(WANAMAKER_CUDA_ARCHITECTURES 90 CACHE STRING "What our own tests are compiled for by nvcc")
set(wanamaker_nvcc ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 --expt-relaxed-constexpr
  -Werror all-warnings -Xcompiler -Wall,-Wextra -I ${PROJECT_SOURCE_DIR}/include)
foreach(architecture IN LISTS WANAMAKER_CUDA_ARCHITECTURES)
  list(APPEND wanamaker_nvcc -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()

# wanamaker_add_cublas_engine(<program> <folder>): what --backend cublas runs, compiled by nvcc.
function(wanamaker_add_cublas_engine program folder)
  if(NOT TARGET wanamaker_cuda OR NOT CUDAToolkit_NVCC_EXECUTABLE)
    message(FATAL_ERROR "WANAMAKER_STUDY_BACKENDS names cublas, which needs CUDA 12 or newer with "
      "nvcc: install it and name its folder in CUDAToolkit_ROOT, or leave cublas out")
  endif()
  set(source ${PROJECT_SOURCE_DIR}/${folder}/engine_cublas.cu)
  set(object ${PROJECT_BINARY_DIR}/${folder}/engine_cublas.o)
  # Folders that the compiler has of itself would be searched before C++'s own.
  list(JOIN CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES "|" implicit)
  string(REPLACE "+" "[+]" implicit "${implicit}")
  set(include_dirs $<TARGET_PROPERTY:wanamaker_wanamaker,INTERFACE_INCLUDE_DIRECTORIES>)
  set(include_dirs "$<REMOVE_DUPLICATES:$<FILTER:${include_dirs},EXCLUDE,^(${implicit})$>>")
  set(definitions $<TARGET_PROPERTY:wanamaker_wanamaker,INTERFACE_COMPILE_DEFINITIONS>)
  add_custom_command(OUTPUT ${object} VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${wanamaker_nvcc} -O2 "-isystem=$<JOIN:${include_dirs},;-isystem=>"
            "-D$<JOIN:${definitions},;-D>" -c ${source} -MD -MF ${object}.d -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d)
  target_sources(${program} PRIVATE ${object})
  target_link_libraries(${program} PRIVATE wanamaker_cuda)
endfunction()

# wanamaker_program_from_folder(<name> <folder>): one program of all sources in the folder, but for
# engines of other backends than WANAMAKER_STUDY_BACKENDS.
function(wanamaker_program_from_folder name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  foreach(backend eigen reference)
    if(NOT backend IN_LIST WANAMAKER_STUDY_BACKENDS)
      list(FILTER sources EXCLUDE REGEX "/engine_${backend}[.]cpp$")
    endif()
  endforeach()
  find_package(CLI11 REQUIRED)
  add_executable(${name} ${sources})
  wanamaker_own_target(${name})
  wanamaker_optimise_kernels(${name})
  target_link_libraries(${name} PRIVATE CLI11::CLI11)
  target_compile_definitions(${name} PRIVATE
    WANAMAKER_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
  if("cublas" IN_LIST WANAMAKER_STUDY_BACKENDS)
    wanamaker_add_cublas_engine(${name} ${folder})
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder}
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # Kernels are optimised at any level (backend/instruction_set.hpp); -O3 for the rest takes a fifth
  # more time to compile, -O1 a third less, but the program half as long again to run.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  # The sources that include the same large headers are compiled as one unit; the engines on the same
  # backend, whose models would be compiled for each, as another; other backends and the report,
  # which needs no models, alone.
  foreach(source IN LISTS sources)
    if(source MATCHES "/engine_(blas|routing|pretrain|finetune)[.]cpp$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP engines)
    elseif(source MATCHES "/engine_reference[.]cpp$")
      # Naive loops, run to compare and never for speed.
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")
    elseif(NOT source MATCHES "/(engine|report)[^/]*$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP program)
    endif()
  endforeach()
endfunction()

# wanamaker_programs_of_one_file(<folder>): every source in the folder is a program of its name, those
# in C of the C library; wanamaker_examples builds them all. Not with sanitizers, which run the parts
# in their own tests.
function(wanamaker_programs_of_one_file folder)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  file(GLOB c_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  add_custom_target(wanamaker_examples)
  foreach(source IN LISTS c_sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE wanamaker_c)
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wconversion
      $<$<BOOL:${WANAMAKER_WERROR}>:-Werror>)
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    add_dependencies(wanamaker_examples ${name})
  endforeach()
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    wanamaker_own_target(${name})
    target_link_libraries(${name} PRIVATE wanamaker_compiled)
    target_compile_definitions(${name} PRIVATE
      WANAMAKER_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
    # They compute little; see wanamaker_layer_tests.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    add_dependencies(wanamaker_examples ${name})
  endforeach()
endfunction()
