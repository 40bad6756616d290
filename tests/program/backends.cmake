# Runs `study perplexity` on every backend of the build and compares what they print: double and
# float, our loops, Eigen's and a BLAS's, to one in ten thousand.
#   cmake -D STUDY=program -D BACKENDS=blas,eigen,reference -D MODEL=folder -D TEXT=file -D OUT=folder
#     -P backends.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/../execute.cmake)

# perplexity_of(<variable> <backend>): in hundredths.
function(perplexity_of variable backend)
  run(${STUDY} perplexity --quiet --backend ${backend} --model ${MODEL} --text ${TEXT}
    --truncate 60 --report-tokens 600 --out ${OUT}/${backend})
  file(READ ${OUT}/${backend}/perplexity.json result)
  string(JSON perplexity GET "${result}" perplexity)
  if(NOT perplexity MATCHES "^([0-9]+)[.]([0-9][0-9])")
    message(FATAL_ERROR "no perplexity of ${backend}: ${perplexity}")
  endif()
  set(${variable} ${CMAKE_MATCH_1}${CMAKE_MATCH_2} PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" backends ${BACKENDS})
list(POP_FRONT backends first)
perplexity_of(expected ${first})
foreach(backend IN LISTS backends)
  perplexity_of(found ${backend})
  math(EXPR difference "(${found}) - (${expected})")
  if(difference GREATER 1 OR difference LESS -1)
    message(SEND_ERROR "hundredths of perplexity: ${first} ${expected}, ${backend} ${found}")
  endif()
endforeach()
