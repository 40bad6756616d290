# Runs an example; it must end with 0 and print what EXPECTED, a regular expression, says.
#   cmake -D PROGRAM=… [-D ARGUMENTS=…] -D EXPECTED=… -P run.cmake
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "no line as '${EXPECTED}'")
endif()
