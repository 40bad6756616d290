# Runs a command of the study program on the embedded models and checks that the result files have
# the keys that other programs rely on (DESIGN: the program and its files).
#   cmake -D COMMAND=sweep -D OUT=folder -P smoke.cmake -- program sweep arguments...
cmake_minimum_required(VERSION 3.22)

# Fails unless every path of keys (a.b.0.c) is in the JSON text.
function(require_keys file text)
  foreach(path IN LISTS ARGN)
    string(REPLACE "." ";" keys ${path})
    string(JSON kind ERROR_VARIABLE error TYPE "${text}" ${keys})
    if(error)
      message(SEND_ERROR "${file} lacks ${path}: ${error}")
    endif()
  endforeach()
endfunction()

set(model protocol model.name model.family model.layers model.width model.parameters)
set(perplexity_keys schema ${model} documents tokens nll_sum perplexity bits_per_byte
    token_ids_hash)
set(delta layers.0.delta)
set(variant layers.0.variants.0)
set(sweep_keys schema ${model} baseline.tokens baseline.nll_sum baseline.perplexity
    layers.0.layer layers.0.r2 layers.0.condition layers.0.lambda
    ${delta}.mean ${delta}.std ${delta}.quantiles ${delta}.share_below ${delta}.top_share
    ${variant}.name ${variant}.parameters ${variant}.perplexity ${variant}.nll_sum
    ${variant}.delta_nats ${variant}.delta_percent ${variant}.ci_low_percent
    ${variant}.ci_high_percent ${variant}.p_value ${variant}.p_holm ${variant}.p_bh ${variant}.auc
    ${variant}.fraction_linear ${variant}.flops_fraction_mlp ${variant}.flops_fraction_total)
set(header schema ${model} fit.tokens gate.tokens baseline.tokens baseline.nll_sum
    baseline.perplexity)
set(curve layers.0.curves.0)
set(gate-curve_keys ${header} layers.0.layer layers.0.r2 layers.0.lambda ${curve}.gate
    ${curve}.area_nats ${curve}.area_below_random ${curve}.share_of_oracle
    ${curve}.operating_point ${curve}.points.0.target ${curve}.points.0.fraction_linear
    ${curve}.points.0.perplexity ${curve}.points.0.delta_percent ${curve}.points.0.ci_low_percent)
set(variant variants.0)
set(compound_keys ${header} chosen frontier.0.name frontier.0.perplexity
    frontier.0.flops_fraction_total ${variant}.name ${variant}.layers ${variant}.perplexity
    ${variant}.delta_percent ${variant}.ci_low_percent ${variant}.ci_high_percent
    ${variant}.fraction_linear ${variant}.flops_fraction_mlp ${variant}.flops_fraction_total)

set(layer layers.0.layer layers.0.r2 layers.0.lambda)
set(probe layers.0.probes.0)
set(probe_keys ${header} ${layer} layers.0.positive_share ${probe}.name ${probe}.auc
    ${probe}.auc_interval ${probe}.above_token_table layers.0.parts.0.length_share
    layers.0.token_context_cosine)
set(pair layers.0.pairs.0)
set(transfer_keys ${header} corpora.2 ${layer} layers.0.variances.1.intraclass
    layers.0.pairs.9.verdict ${pair}.attainable ${pair}.power ${pair}.listed_flips
    ${pair}.base_flips ${pair}.verdict)
set(clusters_keys ${header} clusters ${layer} layers.0.silhouette layers.0.delta_explained.value
    layers.0.delta_explained.random_p95 layers.0.delta_held_out_r2
    layers.0.clusters.0.top_tokens.0.id)
set(fit layers.0.sets.2.fits.0)
set(features_keys ${header} folds smallest_effect ${layer} layers.0.features.0.spearman
    layers.0.sets.2.name ${fit}.r2 ${fit}.r2_interval ${fit}.detectable ${fit}.verdict)
set(marginal_keys ${header} options.exact_positions patch_cost.patches writers.verdict ${layer}
    layers.0.groups.2.share_of_magnitude layers.0.first_order_sum layers.0.joint_sum
    layers.0.agreement.large_same_sign layers.0.statement layers.0.writer.linear_percent
    layers.0.patches.0.exact)

set(forensics_keys ${header} passages.0.tokens.0 passages.0.targets.0 ${layer}
    layers.0.fraction_linear layers.0.direction.0 layers.0.top.0.logit layers.0.delta.0
    layers.0.probability.0)

# What follows "--" on the command line is the program and its arguments.
set(program "")
set(after FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(after)
    list(APPEND program "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(after TRUE)
  endif()
endforeach()

file(REMOVE_RECURSE ${OUT})
execute_process(COMMAND ${program} --quiet --out ${OUT}
                RESULT_VARIABLE result OUTPUT_VARIABLE table ERROR_VARIABLE errors)
message("${table}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${program} ended with ${result}: ${errors}")
endif()
if(table STREQUAL "")
  message(FATAL_ERROR "${program} printed no table")
endif()

file(GLOB_RECURSE files ${OUT}/${COMMAND}.json)
list(LENGTH files count)
if(count LESS 2)
  message(FATAL_ERROR "${COMMAND} wrote ${count} results, expected one for each embedded model")
endif()
foreach(file IN LISTS files)
  if("${COMMAND}" MATCHES "^(probe|transfer|clusters|features|marginal)$")
    string(REGEX REPLACE "json$" "svg" picture ${file})
    if(NOT EXISTS ${picture})
      message(SEND_ERROR "${COMMAND} drew no picture")
    endif()
  endif()
  string(REGEX REPLACE "json$" "html" page ${file})
  if("${COMMAND}" STREQUAL "forensics" AND NOT EXISTS ${page})
    message(SEND_ERROR "${COMMAND} wrote no page")
  endif()
  file(READ ${file} text)
  require_keys(${file} "${text}" ${${COMMAND}_keys})
  string(JSON schema GET "${text}" schema)
  if(NOT schema STREQUAL "wanamaker/1")
    message(SEND_ERROR "${file} has schema ${schema}")
  endif()
endforeach()
