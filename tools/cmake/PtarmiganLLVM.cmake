# ptarmigan_llvm: the static LLVM libraries that the translator uses, with their include folder. Only targets
# under translator/ and their tests may link it.
llvm_map_components_to_libnames(ptarmigan_llvm_libraries
    core support analysis passes scalaropts instcombine transformutils ipo vectorize
    orcjit target codegen asmprinter mc object bitreader linker debuginfodwarf targetparser
    x86codegen x86desc x86info
    aarch64codegen aarch64desc aarch64info)
add_library(ptarmigan_llvm INTERFACE)
target_include_directories(ptarmigan_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(ptarmigan_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(ptarmigan_llvm INTERFACE ${ptarmigan_llvm_definitions})
target_link_libraries(ptarmigan_llvm INTERFACE ${ptarmigan_llvm_libraries})
