# Configures a project for every ```cmake fence of PAGE: its lines after those that every project
# has. Places that a reader has to name are set up here: third_party/wanamaker, the fetched source,
# the installed package.
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
file(READ ${PAGE} rest)

include(${CMAKE_CURRENT_LIST_DIR}/../execute.cmake)

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
set(number 0)
string(FIND "${rest}" "\n```cmake\n" start)
while(NOT start EQUAL -1)
  math(EXPR start "${start} + 10")
  string(SUBSTRING "${rest}" ${start} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} lines)
  math(EXPR number "${number} + 1")
  set(project ${WORK_DIR}/${number})
  file(MAKE_DIRECTORY ${project}/third_party)
  file(CREATE_LINK ${SOURCE_DIR} ${project}/third_party/wanamaker SYMBOLIC)
  file(WRITE ${project}/main.cpp "int main() {}\n")
  file(WRITE ${project}/CMakeLists.txt "cmake_minimum_required(VERSION 3.22)\n"
    "project(consumer LANGUAGES CXX)\nadd_executable(my_program main.cpp)\n${lines}\n")
  run(${CMAKE_COMMAND} -S ${project} -B ${project}/build -G ${GENERATOR}
      -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
      -D FETCHCONTENT_SOURCE_DIR_WANAMAKER=${SOURCE_DIR})
  string(FIND "${rest}" "\n```cmake\n" start)
endwhile()
if(NOT number EQUAL 3)
  message(FATAL_ERROR "${PAGE} has ${number} CMake fences, three ways of embedding were expected")
endif()
