# Script: writes to OUTPUT the definition of sass::lifter_id(), a hash of the C++ sources and tables of FOLDER.
file(GLOB sources ${FOLDER}/*.cpp ${FOLDER}/*.h ${FOLDER}/*.def)
list(SORT sources)
set(hashes "")
foreach(source IN LISTS sources)
    file(SHA256 ${source} hash)
    get_filename_component(name ${source} NAME)
    string(APPEND hashes "${name} ${hash} ")
endforeach()
string(SHA256 id "${hashes}")
file(WRITE ${OUTPUT} "#include \"frontend/sass/lift.h\"

std::string_view ptarmigan::sass::lifter_id() {
    return \"${id}\";
}
")
