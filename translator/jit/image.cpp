// SPDX-License-Identifier: Apache-2.0
// Layout and symbols of the image; the relocation arithmetic of each architecture is in relocations.h.
#include "translator/jit/image.h"

#include "translator/jit/line_table.h"
#include "translator/jit/relocations.h"
#include "translator/jit/stack_sizes.h"
#include "translator/kernel_abi.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace ptarmigan::translator {
namespace {

using llvm::object::ELF64LEObjectFile;
using llvm::object::ELFSectionRef;
using llvm::object::ELFSymbolRef;

template <typename T> T take(llvm::Expected<T> value, const char* what) {
    if (!value) throw ImageError(std::string("image: ") + what + ": " + llvm::toString(value.takeError()));
    return std::move(*value);
}

std::uint32_t import_index(llvm::StringRef name) {
    for (std::uint32_t i = 0; i < std::size(abi::import_names); ++i)
        if (name == abi::import_names[i]) return i;
    throw ImageError("image: generated code calls '" + name.str() + "', which the kernel ABI does not offer");
}

/// Where a relocation points.
struct Target {
    bool defined = false;
    std::uint64_t offset = 0; ///< in the image, if defined
    std::uint32_t import = 0; ///< otherwise
};

class Linker {
public:
    explicit Linker(const ELF64LEObjectFile& object)
        : object_(object),
          arithmetic_(object.getArch() == llvm::Triple::aarch64 ? aarch64_relocations() : x86_64_relocations()) {}

    KernelImage link() {
        place_sections();
        for (const llvm::object::SectionRef& section : object_.sections()) relocate(section);
        image_.entry_offset = static_cast<std::uint32_t>(find_entry());
        image_.code_size = static_cast<std::uint32_t>(code_size_);
        std::sort(image_.relocations.begin(), image_.relocations.end(),
                  [](const auto& a, const auto& b) { return a.offset < b.offset; });
        std::map<std::uint64_t, std::uint32_t> code_sections;
        for (const auto& [index, offset] : section_offsets_)
            if (offset < code_size_) code_sections[index] = static_cast<std::uint32_t>(offset);
        image_.lines = read_line_table(object_, code_sections);
        const StackSizes stack = read_stack_sizes(object_);
        image_.stack_bytes = stack.all;
        image_.largest_frame = stack.largest;
        return std::move(image_);
    }

private:
    void place_sections() {
        std::vector<llvm::object::SectionRef> code, constants;
        for (const llvm::object::SectionRef& section : object_.sections()) {
            const std::uint64_t flags = ELFSectionRef(section).getFlags();
            const llvm::StringRef name = take(section.getName(), "section name");
            if (!(flags & llvm::ELF::SHF_ALLOC) || section.getSize() == 0) continue;
            if (name == ".eh_frame" || name.starts_with(".note")) continue;
            if (flags & llvm::ELF::SHF_EXECINSTR)
                code.push_back(section);
            else if (!(flags & llvm::ELF::SHF_WRITE) || name.starts_with(".data.rel.ro"))
                constants.push_back(section);
            else
                throw ImageError("image: generated code has writable data (" + name.str() + ")");
        }
        for (const auto& section : code) append(section);
        // Stubs and slots are made while relocating; reserve one of each per import.
        stubs_ = align(image_.bytes.size(), 16);
        code_size_ = align(stubs_ + std::size(abi::import_names) * arithmetic_.stub_size, image_page_size);
        image_.bytes.resize(code_size_, arithmetic_.padding);
        for (const auto& section : constants) append(section);
    }

    static std::size_t align(std::size_t value, std::size_t alignment) {
        return (value + alignment - 1) / alignment * alignment;
    }

    void append(const llvm::object::SectionRef& section) {
        const std::size_t alignment = section.getAlignment().value();
        if (alignment > image_page_size) throw ImageError("image: section alignment too large");
        const std::size_t offset = align(image_.bytes.size(), alignment);
        if (offset + section.getSize() > max_image_size) throw ImageError("image: too large");
        image_.bytes.resize(offset);
        if (ELFSectionRef(section).getType() == llvm::ELF::SHT_NOBITS) {
            image_.bytes.resize(offset + section.getSize());
        } else {
            const llvm::StringRef contents = take(section.getContents(), "section contents");
            image_.bytes.insert(image_.bytes.end(), contents.bytes_begin(), contents.bytes_end());
        }
        section_offsets_[section.getIndex()] = offset;
    }

    Target resolve(const llvm::object::RelocationRef& relocation) {
        const llvm::object::symbol_iterator symbol = relocation.getSymbol();
        if (symbol == object_.symbol_end()) throw ImageError("image: relocation without a symbol");
        const auto section = take(symbol->getSection(), "symbol section");
        if (section == object_.section_end()) return {false, 0, import_index(take(symbol->getName(), "symbol name"))};
        const auto place = section_offsets_.find(section->getIndex());
        if (place == section_offsets_.end())
            throw ImageError("image: reference into section " + take(section->getName(), "section name").str());
        return {true, place->second + take(symbol->getValue(), "symbol value"), 0};
    }

    /// Offset of an 8-byte slot that the loader fills with the absolute address of the target.
    std::uint64_t address_slot(const Target& target) {
        const std::uint64_t key = target.defined ? target.offset : ~std::uint64_t(target.import);
        const auto [slot, is_new] = slots_.try_emplace(key, 0);
        if (is_new) {
            slot->second = align(image_.bytes.size(), 8);
            image_.bytes.resize(slot->second + 8);
            add_absolute(slot->second, target, 0);
        }
        return slot->second;
    }

    /// Offset of a stub that jumps to an import, for direct calls.
    std::uint64_t import_stub(const Target& target) {
        const std::uint64_t stub = stubs_ + target.import * arithmetic_.stub_size;
        const std::uint64_t slot = address_slot(target);
        arithmetic_.write_stub(image_.bytes.data() + stub, stub, slot);
        return stub;
    }

    void add_absolute(std::uint64_t offset, const Target& target, std::int64_t addend) {
        KernelImage::Relocation relocation;
        relocation.offset = static_cast<std::uint32_t>(offset);
        relocation.import = target.defined ? image_base_import : target.import;
        relocation.addend = (target.defined ? target.offset : 0) + static_cast<std::uint64_t>(addend);
        image_.relocations.push_back(relocation);
    }

    void relocate(const llvm::object::SectionRef& section) {
        const auto relocated = take(section.getRelocatedSection(), "relocated section");
        if (relocated == object_.section_end()) return;
        const auto place = section_offsets_.find(relocated->getIndex());
        if (place == section_offsets_.end()) return; // debug information, .eh_frame
        for (const llvm::object::RelocationRef& relocation : section.relocations()) {
            const std::uint64_t offset = place->second + relocation.getOffset();
            const auto type = static_cast<std::uint32_t>(relocation.getType());
            const std::int64_t addend =
                take(llvm::object::ELFRelocationRef(relocation).getAddend(), "relocation addend");
            const RelocationKind kind = arithmetic_.kind(type);
            if (kind == RelocationKind::ignored) continue;
            if (offset + arithmetic_.field_size(type) > image_.bytes.size())
                throw ImageError("image: relocation outside its section");
            const Target target = resolve(relocation);
            if (kind == RelocationKind::absolute) {
                add_absolute(offset, target, addend);
                continue;
            }
            std::uint64_t value;
            if (kind == RelocationKind::address_slot)
                value = address_slot(target);
            else if (target.defined)
                value = target.offset;
            else if (kind == RelocationKind::call)
                value = import_stub(target);
            else
                throw ImageError("image: data reference to an import");
            arithmetic_.apply(image_.bytes.data() + offset, type, offset, value + static_cast<std::uint64_t>(addend));
        }
    }

    std::uint64_t find_entry() {
        for (const ELFSymbolRef& symbol : object_.symbols()) {
            if (take(symbol.getName(), "symbol name") != entry_symbol) continue;
            const auto section = take(symbol.getSection(), "symbol section");
            if (section == object_.section_end()) break;
            const auto place = section_offsets_.find(section->getIndex());
            if (place == section_offsets_.end()) break;
            return place->second + take(symbol.getValue(), "symbol value");
        }
        throw ImageError(std::string("image: no function '") + entry_symbol + "'");
    }

    static constexpr std::size_t max_image_size = std::size_t(1) << 30;

    const ELF64LEObjectFile& object_;
    const RelocationArithmetic& arithmetic_;
    KernelImage image_;
    std::map<std::uint64_t, std::uint64_t> section_offsets_; ///< section index -> image offset
    std::map<std::uint64_t, std::uint64_t> slots_;           ///< target -> slot offset
    std::size_t stubs_ = 0;
    std::size_t code_size_ = 0;
};

} // namespace

KernelImage link_image(llvm::MemoryBufferRef buffer) {
    const auto object = take(llvm::object::ObjectFile::createELFObjectFile(buffer), "object");
    const auto* elf = llvm::dyn_cast<ELF64LEObjectFile>(object.get());
    if (!elf || (elf->getArch() != llvm::Triple::x86_64 && elf->getArch() != llvm::Triple::aarch64))
        throw ImageError("image: not an x86-64 or AArch64 ELF object");
    return Linker(*elf).link();
}

} // namespace ptarmigan::translator
