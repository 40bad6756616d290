# Installing and packaging. The installed package looks for its dependencies on the machine it is
# used on, so it holds no path of this one.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/wanamaker)
set(exported wanamaker_wanamaker)
foreach(component IN LISTS wanamaker_components)
  list(APPEND exported wanamaker_${component})
endforeach()

# What is compiled only where it was asked for: the package is headers otherwise.
set(installed_components ${wanamaker_components})
set(arch_independent ARCH_INDEPENDENT)
foreach(option_and_library "WANAMAKER_BUILD_C_API;c" "WANAMAKER_BUILD_COMPILED;compiled")
  list(GET option_and_library 0 wanted)
  list(GET option_and_library 1 library)
  if(${wanted})
    list(APPEND installed_components ${library})
    list(APPEND exported wanamaker_${library})
    set(arch_independent "")
  endif()
endforeach()

install(TARGETS ${exported} EXPORT wanamakerTargets)
install(EXPORT wanamakerTargets NAMESPACE wanamaker:: DESTINATION ${package_dir})
install(DIRECTORY include/wanamaker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(FILES include/wanamaker.h include/wanamaker.cpp include/wanamaker_compiled.cpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/wanamakerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/wanamakerConfig.cmake INSTALL_DESTINATION ${package_dir})
# While the version is 0.x, a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/wanamakerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ${arch_independent})
install(FILES
  ${PROJECT_BINARY_DIR}/wanamakerConfig.cmake
  ${PROJECT_BINARY_DIR}/wanamakerConfigVersion.cmake
  cmake/FindCBLAS.cmake cmake/FindONEDNN.cmake cmake/FindPCRE2.cmake cmake/Findutf8proc.cmake
  cmake/FindZSTD.cmake
  DESTINATION ${package_dir})

if(PROJECT_IS_TOP_LEVEL AND arch_independent)
  # Nothing that is built is installed.
  set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME libwanamaker-dev)
  set(CPACK_PACKAGE_CONTACT "maintainers of wanamaker")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  # What find_package(wanamaker) requires, and what it uses where it is found.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libeigen3-dev, libxtensor-dev, nlohmann-json3-dev, \
libpcre2-dev, libutf8proc-dev")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "zlib1g-dev, libzstd-dev, libdnnl-dev, \
libopenblas-serial-dev | libopenblas-dev")
  include(CPack)
endif()
