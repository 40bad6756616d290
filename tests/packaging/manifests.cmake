# cmake/vcpkg.json and cmake/conanfile.py have the project's name and version, and name exactly the
# packages that cmake/bootstrap.sh names for these package managers.
#   cmake -D SOURCE_DIR=… -D VERSION=… -D WORK_DIR=… -P manifests.cmake
cmake_minimum_required(VERSION 3.22)

file(READ ${SOURCE_DIR}/cmake/bootstrap.sh bootstrap)
file(READ ${SOURCE_DIR}/cmake/vcpkg.json vcpkg)
file(READ ${SOURCE_DIR}/cmake/conanfile.py conan)

# The words that bootstrap.sh prints behind the name of a package manager.
function(bootstrap_packages manager result)
  string(REGEX MATCH "\n  ${manager} +([^\n]+(\n         [^\n]+)*)" line "${bootstrap}")
  if(NOT line)
    message(FATAL_ERROR "bootstrap.sh names no packages for ${manager}")
  endif()
  string(REGEX REPLACE "[ \n]+" ";" packages "${CMAKE_MATCH_1}")
  set(${result} ${packages} PARENT_SCOPE)
endfunction()

function(append_array result)
  string(JSON count LENGTH "${vcpkg}" ${ARGN})
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON package GET "${vcpkg}" ${ARGN} ${i})
    list(APPEND ${result} ${package})
  endforeach()
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

function(require_equal what found expected)
  list(SORT found)
  list(SORT expected)
  if(NOT found STREQUAL expected)
    message(SEND_ERROR "${what}: ${found}; expected ${expected}")
  endif()
endfunction()

string(JSON name GET "${vcpkg}" name)
string(JSON version GET "${vcpkg}" version)
require_equal("vcpkg.json" "${name} ${version}" "wanamaker ${VERSION}")
append_array(vcpkg_packages dependencies)
append_array(vcpkg_packages features study dependencies)
append_array(vcpkg_packages features tests dependencies)
bootstrap_packages(vcpkg expected)
require_equal("packages in vcpkg.json" "${vcpkg_packages}" "${expected}")

string(REGEX MATCH "\n    name = \"([^\"]*)\"\n    version = \"([^\"]*)\"" line "${conan}")
require_equal("conanfile.py" "${CMAKE_MATCH_1} ${CMAKE_MATCH_2}" "wanamaker ${VERSION}")
string(REGEX MATCHALL "\n        \"[a-z0-9_]+/" conan_packages "${conan}")
list(TRANSFORM conan_packages REPLACE "[^a-z0-9_]" "")
bootstrap_packages(conan expected)
require_equal("packages in conanfile.py" "${conan_packages}" "${expected}")

find_program(python3 python3)
if(NOT python3)
  message("the syntax of conanfile.py was not checked: python3 is not installed")
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env PYTHONPYCACHEPREFIX=${WORK_DIR}
                ${python3} -m py_compile ${SOURCE_DIR}/cmake/conanfile.py
                RESULT_VARIABLE status ERROR_VARIABLE fault)
if(NOT status EQUAL 0)
  message(SEND_ERROR "${fault}")
endif()
