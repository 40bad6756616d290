# The software that this build stands on, as CycloneDX 1.5: sbom.cdx.json in the build folder, made
# of what was found when it was configured. Names are vcpkg's.

# Adds what was found. `version`: a variable's name, which may be unset where a package tells none.
function(wanamaker_sbom_component name target version licence)
  if(NOT TARGET ${target})
    return()
  endif()
  set(component "{\"type\":\"library\",\"name\":\"${name}\"}")
  if(${version})
    string(JSON component SET "${component}" version "\"${${version}}\"")
  endif()
  string(JSON component SET "${component}" licenses "[{\"license\":{\"id\":\"${licence}\"}}]")
  string(JSON count LENGTH "${sbom}" components)
  string(JSON sbom SET "${sbom}" components ${count} "${component}")
  set(sbom "${sbom}" PARENT_SCOPE)
endfunction()

function(wanamaker_write_sbom)
  # Found here for their versions; their targets are those that the programs link.
  foreach(package CLI11 doctest benchmark)
    find_package(${package} QUIET)
  endforeach()
  set(sbom "{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"version\":1,\"components\":[]}")
  string(JSON sbom SET "${sbom}" metadata "{\"component\":{\"type\":\"library\",
    \"name\":\"${PROJECT_NAME}\",\"version\":\"${PROJECT_VERSION}\",
    \"licenses\":[{\"license\":{\"id\":\"MIT\"}}]}}")
  wanamaker_sbom_component(eigen3 Eigen3::Eigen Eigen3_VERSION MPL-2.0)
  wanamaker_sbom_component(xtensor xtensor xtensor_VERSION BSD-3-Clause)
  wanamaker_sbom_component(nlohmann-json nlohmann_json::nlohmann_json nlohmann_json_VERSION MIT)
  wanamaker_sbom_component(pcre2 PCRE2::8BIT PC_PCRE2_VERSION BSD-3-Clause)
  wanamaker_sbom_component(utf8proc utf8proc::utf8proc PC_UTF8PROC_VERSION MIT)
  wanamaker_sbom_component(zlib ZLIB::ZLIB ZLIB_VERSION_STRING Zlib)
  wanamaker_sbom_component(zstd ZSTD::ZSTD PC_ZSTD_VERSION BSD-3-Clause)
  if(CBLAS_LIBRARIES MATCHES openblas)  # of another CBLAS neither name nor licence is known
    wanamaker_sbom_component(openblas CBLAS::CBLAS PC_CBLAS_openblas_VERSION BSD-3-Clause)
  endif()
  wanamaker_sbom_component(onednn ONEDNN::ONEDNN dnnl_VERSION Apache-2.0)
  wanamaker_sbom_component(cli11 CLI11::CLI11 CLI11_VERSION BSD-3-Clause)
  wanamaker_sbom_component(doctest doctest::doctest doctest_VERSION MIT)
  wanamaker_sbom_component(benchmark benchmark::benchmark benchmark_VERSION Apache-2.0)
  file(WRITE ${PROJECT_BINARY_DIR}/sbom.cdx.json "${sbom}\n")
endfunction()

wanamaker_write_sbom()
