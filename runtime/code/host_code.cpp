// SPDX-License-Identifier: Apache-2.0
// Code first, on pages of its own, then the other sections, then a table of addresses (GOT) with a slot for each
// symbol.
#include "runtime/code/host_code.h"

#include "runtime/base/page_size.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

extern "C" __attribute__((visibility("hidden"))) const Elf64_Ehdr __ehdr_start; ///< of the library that this is in

namespace ptarmigan::runtime {
namespace {

constexpr std::string_view table_symbol = "__CUDA_TILEIR_CALLBACKS", got_symbol = "_GLOBAL_OFFSET_TABLE_";
constexpr std::size_t largest = 1 << 24;

/// What the object's table says; other words of it are zero in all that were seen.
struct CallbackTable {
    std::uint64_t version, unknown[3], entry_size;
    std::uint8_t* entries;
    std::uint64_t count;
};
struct CallbackEntry {
    const char* kernel;
    std::uint64_t unknown[4];
    HostCode::Function* on_arguments_change;
};
constexpr std::uint64_t known_version = 2;

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error(why);
}

std::size_t align(std::size_t value, std::size_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

} // namespace

class HostCode::Linker {
public:
    Linker(std::span<const std::uint8_t> object, HostCode& code) : object_(object), code_(code) {}

    void link() {
        read_headers();
        place();
        for (const Elf64_Shdr& section : sections_)
            if (section.sh_type == SHT_RELA && section.sh_info < sections_.size()) relocate(section);
        if (mprotect(code_.base_, code_size_, PROT_READ | PROT_EXEC) != 0)
            fail("the system does not let it be executable");
        read_table();
    }

private:
    static constexpr std::size_t nowhere = ~std::size_t{0};

    template <class T> T get(std::size_t offset) const {
        static_assert(std::is_trivially_copyable_v<T>);
        if (offset > object_.size() || object_.size() - offset < sizeof(T)) fail("damaged");
        T value;
        std::memcpy(&value, object_.data() + offset, sizeof value);
        return value;
    }

    void read_headers() {
        if (object_.empty()) fail("there is none");
        const auto header = get<Elf64_Ehdr>(0);
        if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
            header.e_type != ET_REL || header.e_shentsize != sizeof(Elf64_Shdr))
            fail("damaged");
        if (header.e_machine != __ehdr_start.e_machine) fail("for another CPU");
        if (header.e_machine != EM_X86_64) fail("not supported on this CPU");
        for (std::size_t i = 0; i < header.e_shnum; ++i)
            sections_.push_back(get<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
        for (const Elf64_Shdr& section : sections_) {
            if (section.sh_size > largest) fail("damaged");
            if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
                (section.sh_offset > object_.size() || object_.size() - section.sh_offset < section.sh_size))
                fail("damaged");
            if (section.sh_type == SHT_SYMTAB) symbols_ = &section;
        }
        if (symbols_ == nullptr || symbols_->sh_link >= sections_.size()) fail("damaged");
        symbol_count_ = symbols_->sh_size / sizeof(Elf64_Sym);
    }

    Elf64_Sym symbol(std::size_t index) const {
        if (index >= symbol_count_) fail("damaged");
        return get<Elf64_Sym>(symbols_->sh_offset + index * sizeof(Elf64_Sym));
    }

    std::string_view name_of(const Elf64_Sym& symbol) const {
        const Elf64_Shdr& strings = sections_[symbols_->sh_link];
        if (strings.sh_type != SHT_STRTAB || symbol.st_name >= strings.sh_size) fail("damaged");
        const auto* name = reinterpret_cast<const char*>(object_.data() + strings.sh_offset + symbol.st_name);
        return {name, strnlen(name, strings.sh_size - symbol.st_name)};
    }

    void place() {
        places_.assign(sections_.size(), nowhere);
        std::size_t end = 0;
        const auto put = [&](bool is_code) {
            for (std::size_t i = 0; i < sections_.size(); ++i) {
                const Elf64_Shdr& section = sections_[i];
                if ((section.sh_flags & SHF_ALLOC) == 0 || ((section.sh_flags & SHF_EXECINSTR) != 0) != is_code)
                    continue;
                const std::size_t alignment = std::max<std::size_t>(section.sh_addralign, 1);
                if (alignment > 4096 || (alignment & (alignment - 1)) != 0) fail("damaged");
                places_[i] = align(end, alignment);
                end = places_[i] + section.sh_size;
                if (end > largest) fail("damaged");
            }
        };
        put(true);
        code_size_ = end = round_up_to_pages(std::max<std::size_t>(end, 1));
        put(false);
        got_ = align(end, 8);
        code_.size_ = round_up_to_pages(got_ + 8 * symbol_count_);
        void* memory = mmap(nullptr, code_.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) fail("no memory");
        code_.base_ = static_cast<std::uint8_t*>(memory);
        for (std::size_t i = 0; i < sections_.size(); ++i)
            if (places_[i] != nowhere && sections_[i].sh_type != SHT_NOBITS)
                std::memcpy(code_.base_ + places_[i], object_.data() + sections_[i].sh_offset, sections_[i].sh_size);
    }

    std::uint64_t address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(code_.base_) + offset; }

    std::uint64_t address_of(const Elf64_Sym& symbol) const {
        if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
        if (symbol.st_shndx == SHN_UNDEF) {
            const std::string_view name = name_of(symbol);
            if (name == got_symbol) return address(got_);
            if (name == "memcpy")
                return reinterpret_cast<std::uintptr_t>(
                    static_cast<void* (*)(void*, const void*, std::size_t)>(memcpy));
            if (name == "memset")
                return reinterpret_cast<std::uintptr_t>(static_cast<void* (*)(void*, int, std::size_t)>(memset));
            fail("it calls '" + std::string(name) + "'");
        }
        if (symbol.st_shndx >= sections_.size() || places_[symbol.st_shndx] == nowhere ||
            symbol.st_value > sections_[symbol.st_shndx].sh_size)
            fail("damaged");
        return address(places_[symbol.st_shndx] + symbol.st_value);
    }

    /// The slot of a symbol, which then holds its address.
    std::uint64_t slot(std::size_t index) {
        const std::uint64_t value = address_of(symbol(index));
        std::memcpy(code_.base_ + got_ + 8 * index, &value, sizeof value);
        return address(got_ + 8 * index);
    }

    void relocate(const Elf64_Shdr& relocations) {
        const std::size_t target = relocations.sh_info;
        if (places_[target] == nowhere) return;
        for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= relocations.sh_size; at += sizeof(Elf64_Rela)) {
            const auto relocation = get<Elf64_Rela>(relocations.sh_offset + at);
            if (relocation.r_offset > sections_[target].sh_size) fail("damaged");
            const std::size_t place = places_[target] + relocation.r_offset,
                              room = sections_[target].sh_size - relocation.r_offset;
            apply(place, room, ELF64_R_TYPE(relocation.r_info), ELF64_R_SYM(relocation.r_info),
                  static_cast<std::uint64_t>(relocation.r_addend));
        }
    }

    void apply(std::size_t place, std::size_t room, std::uint64_t type, std::size_t index, std::uint64_t addend) {
        const auto put = [&](std::uint64_t value, std::size_t bytes) {
            if (room < bytes) fail("damaged");
            if (bytes == 4 && static_cast<std::int64_t>(value) != static_cast<std::int32_t>(value))
                fail("a distance beyond 2 GiB");
            std::memcpy(code_.base_ + place, &value, bytes);
        };
        const std::uint64_t here = address(place), got = address(got_);
        switch (type) {
        case R_X86_64_NONE: return;
        case R_X86_64_64: return put(address_of(symbol(index)) + addend, 8);
        case R_X86_64_PC64: return put(address_of(symbol(index)) + addend - here, 8);
        case R_X86_64_PC32:
        case R_X86_64_PLT32: return put(address_of(symbol(index)) + addend - here, 4);
        case R_X86_64_GOTOFF64: return put(address_of(symbol(index)) + addend - got, 8);
        case R_X86_64_GOTPC64: return put(got + addend - here, 8);
        case R_X86_64_GOTPC32: return put(got + addend - here, 4);
        case R_X86_64_GOT64: return put(slot(index) + addend - got, 8);
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: return put(slot(index) + addend - here, 4);
        default: fail("relocation " + std::to_string(type));
        }
    }

    /// Whether `size` bytes lie in this code's data.
    bool has(const void* place, std::size_t size) const {
        const auto offset = reinterpret_cast<std::uintptr_t>(place) - reinterpret_cast<std::uintptr_t>(code_.base_);
        return offset < code_.size_ && code_.size_ - offset >= size;
    }

    void read_table() {
        const CallbackTable* table = nullptr;
        for (std::size_t i = 0; i < symbol_count_ && table == nullptr; ++i)
            if (const Elf64_Sym one = symbol(i); one.st_shndx != SHN_UNDEF && name_of(one) == table_symbol)
                table = reinterpret_cast<const CallbackTable*>(address_of(one));
        if (table == nullptr || !has(table, sizeof *table)) fail("without a table");
        if (table->version != known_version) fail("a table of version " + std::to_string(table->version));
        if (table->entry_size < sizeof(CallbackEntry) || table->count > largest || table->entry_size > largest ||
            !has(table->entries, table->entry_size * table->count))
            fail("damaged");
        for (std::uint64_t i = 0; i < table->count; ++i) {
            CallbackEntry entry;
            std::memcpy(&entry, table->entries + i * table->entry_size, sizeof entry);
            const auto name = reinterpret_cast<std::uintptr_t>(entry.kernel) - address(0);
            const auto function = reinterpret_cast<std::uintptr_t>(entry.on_arguments_change) - address(0);
            if (!has(entry.kernel, 1) || (entry.on_arguments_change != nullptr && function >= code_size_))
                fail("damaged");
            if (entry.on_arguments_change != nullptr)
                code_.entries_.push_back(
                    {{entry.kernel, strnlen(entry.kernel, code_.size_ - name)}, entry.on_arguments_change});
        }
    }

    std::span<const std::uint8_t> object_;
    HostCode& code_;
    std::vector<Elf64_Shdr> sections_;
    std::vector<std::size_t> places_; ///< of sections; nowhere: not loaded
    const Elf64_Shdr* symbols_ = nullptr;
    std::size_t symbol_count_ = 0, code_size_ = 0, got_ = 0;
};

std::unique_ptr<const HostCode> HostCode::load(std::span<const std::uint8_t> object, std::string& why) {
    std::unique_ptr<HostCode> code(new HostCode);
    try {
        Linker(object, *code).link();
    } catch (const std::runtime_error& error) {
        why = error.what();
        return nullptr;
    }
    return code;
}

HostCode::~HostCode() {
    if (base_ != nullptr) munmap(base_, size_);
}

HostCode::Function* HostCode::find(std::string_view kernel) const {
    for (const Entry& entry : entries_)
        if (entry.kernel == kernel) return entry.function;
    return nullptr;
}

} // namespace ptarmigan::runtime
