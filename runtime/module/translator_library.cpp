// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/translator_library.h"

#include "runtime/module/kernel_cache.h"
#include "translator/kernel_abi_version.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace ptarmigan::runtime {
namespace {

constexpr const char* library_name = "libptarmigan-translator.so";

std::string folder_of_this_code() {
    Dl_info info{};
    std::string file;
    if (dladdr(reinterpret_cast<const void*>(&default_translator_path), &info) && info.dli_fname) file = info.dli_fname;
    if (file.find('/') == std::string::npos) file = "/proc/self/exe"; // a program started by name
    char resolved[PATH_MAX];
    if (!realpath(file.c_str(), resolved)) return {};
    file = resolved;
    return file.substr(0, file.rfind('/'));
}

/// The descriptor of the build-id note among `notes`, as hexadecimal text.
std::string find_build_id(const std::vector<char>& notes) {
    std::size_t at = 0;
    while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data() + at, sizeof note);
        const std::size_t name = at + sizeof note;
        const std::size_t descriptor = name + ((std::size_t{note.n_namesz} + 3) & ~std::size_t{3});
        const std::size_t end = descriptor + ((std::size_t{note.n_descsz} + 3) & ~std::size_t{3});
        if (end > notes.size()) break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
            std::string text;
            for (std::size_t i = 0; i < note.n_descsz; ++i) {
                const auto byte = static_cast<unsigned char>(notes[descriptor + i]);
                text += "0123456789abcdef"[byte >> 4];
                text += "0123456789abcdef"[byte & 15];
            }
            return text;
        }
        at = end;
    }
    return {};
}

std::string read_build_id(int fd) {
    Elf64_Ehdr header;
    if (::pread(fd, &header, sizeof header, 0) != sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return {};
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
        if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return {};
        if (segment.p_type != PT_NOTE || segment.p_filesz > 65536) continue;
        std::vector<char> notes(segment.p_filesz);
        if (::pread(fd, notes.data(), notes.size(), static_cast<off_t>(segment.p_offset)) !=
            static_cast<ssize_t>(notes.size()))
            return {};
        if (std::string id = find_build_id(notes); !id.empty()) return id;
    }
    return {};
}

/// For dl_iterate_phdr(): the build id of the object that `runtime_build_id` is in, into the string behind `result`.
int find_own_build_id(dl_phdr_info* object, std::size_t, void* result) {
    const auto here = reinterpret_cast<std::uintptr_t>(&runtime_build_id);
    std::string id;
    bool is_own = false;
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const Elf64_Phdr& segment = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && here >= begin && here - begin < segment.p_memsz) is_own = true;
        if (segment.p_type != PT_NOTE || !id.empty()) continue;
        const auto* notes = reinterpret_cast<const char*>(begin);
        id = find_build_id({notes, notes + segment.p_memsz});
    }
    if (is_own) *static_cast<std::string*>(result) = id;
    return is_own;
}

const translator::TranslatorApi* load_library(const std::string& path) {
    // Local: its LLVM must not meet the host program's. Never unloaded: LLVM leaves destructors behind.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char* reason = dlerror();
        throw MissingTranslator(std::string("can't load the translator: ") + (reason ? reason : path.c_str()));
    }
    const auto entry = reinterpret_cast<decltype(&translator::ptarmigan_translator_entry)>(
        dlsym(library, "ptarmigan_translator_entry"));
    const translator::TranslatorApi* api = entry ? entry() : nullptr;
    if (!api || api->abi_version != abi::kernel_abi_version)
        throw MissingTranslator("the translator " + path + " is not of this version of Ptarmigan");
    return api;
}

} // namespace

std::string default_translator_path() {
    const std::string folder = folder_of_this_code();
    // Libraries lie together; programs find them in the sibling lib/.
    for (const std::string& path : {folder + "/" + library_name, folder + "/../lib/" + library_name})
        if (::access(path.c_str(), R_OK) == 0) return path;
    return {};
}

std::string translator_build_id(const std::string& library_path) {
    const int fd = ::open(library_path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string id = read_build_id(fd);
    struct stat status;
    if (id.empty() && ::fstat(fd, &status) == 0)
        id = std::to_string(status.st_size) + "-" + std::to_string(status.st_mtim.tv_sec) + "-" +
             std::to_string(status.st_mtim.tv_nsec);
    ::close(fd);
    return id;
}

std::string runtime_build_id() {
    std::string id;
    dl_iterate_phdr(find_own_build_id, &id);
    return id;
}

const translator::TranslatorApi& translator_api(const std::string& library_path) {
    static std::mutex mutex;
    static auto& loaded =
        *new std::map<std::string, const translator::TranslatorApi*>; // kernels may be compiled at exit
    if (library_path.empty())
        throw MissingTranslator(std::string("can't find ") + library_name +
                                " beside the runtime (PTARMIGAN_TRANSLATOR says where it is)");
    const std::lock_guard lock(mutex);
    const translator::TranslatorApi*& api = loaded[library_path];
    if (!api) api = load_library(library_path);
    return *api;
}

} // namespace ptarmigan::runtime
