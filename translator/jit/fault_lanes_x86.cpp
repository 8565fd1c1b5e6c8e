// SPDX-License-Identifier: Apache-2.0
// Decodes the instruction with Zydis and computes what it accessed.
#include "translator/fault_lanes.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ptarmigan::translator {

namespace {

constexpr std::uint64_t page = 4096;

/// A decoded instruction with one memory operand, and the registers it ran with.
class Access {
public:
    static std::optional<Access> decode(const FaultPlace& place) {
        ZydisDecoder decoder;
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        Access access(place);
        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeFull(&decoder, place.code, place.code_size, &access.instruction_, access.operands_)))
            return std::nullopt;
        unsigned found = 0;
        for (unsigned i = 0; i < access.instruction_.operand_count_visible; ++i) {
            if (access.operands_[i].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
            access.memory_ = i;
            ++found;
        }
        const ZydisRegister segment = access.memory().mem.segment;
        const bool plain = found == 1 && segment != ZYDIS_REGISTER_FS && segment != ZYDIS_REGISTER_GS;
        return plain ? std::optional(access) : std::nullopt;
    }

    bool is_gather() const { return memory().mem.type == ZYDIS_MEMOP_TYPE_VSIB; }
    std::size_t bytes() const { return memory().size / 8; }

    /// Address of the access; of element `i` of a gather or scatter.
    std::uint64_t address(unsigned i = 0) const {
        const ZydisDecodedOperandMem& mem = memory().mem;
        std::uint64_t sum = general(mem.base) + (mem.disp.has_displacement ? std::uint64_t(mem.disp.value) : 0);
        if (mem.index == ZYDIS_REGISTER_NONE) return sum;
        const std::uint64_t index = is_gather() ? vector_index(i) : general(mem.index);
        return sum + index * mem.scale;
    }
    unsigned gather_element_bytes() const { return memory().element_size / 8; }
    unsigned gather_elements() const {
        const unsigned indices =
            ZydisRegisterGetWidth(instruction_.machine_mode, memory().mem.index) / 8 / index_bytes();
        const ZydisDecodedOperand* data = data_operand();
        return data ? std::min(indices, data->size / 8 / gather_element_bytes()) : 0;
    }

    bool is_masked() const { return mask_register() != ZYDIS_REGISTER_NONE; }
    /// False for an element that the instruction's mask leaves out.
    bool selects(unsigned element, unsigned element_bytes) const {
        const ZydisRegister mask = mask_register();
        if (mask == ZYDIS_REGISTER_NONE) return true;
        const auto number = unsigned(ZydisRegisterGetId(mask));
        if (ZydisRegisterGetClass(mask) == ZYDIS_REGCLASS_MASK) return place_.state->masks[number & 7] >> element & 1;
        // AVX2: the top bit of each element.
        return place_.state->vectors[number][(element + 1) * element_bytes - 1] & 0x80;
    }

private:
    explicit Access(const FaultPlace& place) : place_(place) {}

    const ZydisDecodedOperand& memory() const { return operands_[memory_]; }
    std::uint64_t general(ZydisRegister name) const {
        if (name == ZYDIS_REGISTER_NONE) return 0;
        if (name == ZYDIS_REGISTER_RIP) return place_.pc + instruction_.length;
        return place_.state->general[unsigned(ZydisRegisterGetId(name)) & 15];
    }
    bool has_small_indices() const {
        switch (instruction_.mnemonic) {
        case ZYDIS_MNEMONIC_VPGATHERDD:
        case ZYDIS_MNEMONIC_VPGATHERDQ:
        case ZYDIS_MNEMONIC_VGATHERDPS:
        case ZYDIS_MNEMONIC_VGATHERDPD:
        case ZYDIS_MNEMONIC_VPSCATTERDD:
        case ZYDIS_MNEMONIC_VPSCATTERDQ:
        case ZYDIS_MNEMONIC_VSCATTERDPS:
        case ZYDIS_MNEMONIC_VSCATTERDPD: return true;
        default: return false;
        }
    }
    unsigned index_bytes() const { return has_small_indices() ? 4 : 8; }
    std::uint64_t vector_index(unsigned i) const {
        const std::uint8_t* at =
            place_.state->vectors[unsigned(ZydisRegisterGetId(memory().mem.index)) & 31] + i * index_bytes();
        std::int32_t narrow = 0;
        std::uint64_t wide = 0;
        if (index_bytes() == 4)
            std::memcpy(&narrow, at, sizeof narrow);
        else
            std::memcpy(&wide, at, sizeof wide);
        return index_bytes() == 4 ? std::uint64_t(std::int64_t(narrow)) : wide;
    }
    /// The register of a gather or scatter that the elements go to or come from.
    const ZydisDecodedOperand* data_operand() const {
        const unsigned last = instruction_.operand_count_visible - 1u;
        const ZydisDecodedOperand& operand = memory_ == 0 ? operands_[last] : operands_[0];
        return operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? &operand : nullptr;
    }
    ZydisRegister mask_register() const {
        if (instruction_.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) // k0 stands for no mask
            return instruction_.avx.mask.reg == ZYDIS_REGISTER_K0 ? ZYDIS_REGISTER_NONE : instruction_.avx.mask.reg;
        switch (instruction_.mnemonic) {
        case ZYDIS_MNEMONIC_VMASKMOVPS:
        case ZYDIS_MNEMONIC_VMASKMOVPD:
        case ZYDIS_MNEMONIC_VPMASKMOVD:
        case ZYDIS_MNEMONIC_VPMASKMOVQ: return operands_[1].reg.value;
        default: break;
        }
        return is_gather() ? operands_[2].reg.value : ZYDIS_REGISTER_NONE;
    }

    const FaultPlace& place_;
    ZydisDecodedInstruction instruction_;
    ZydisDecodedOperand operands_[ZYDIS_MAX_OPERAND_COUNT];
    unsigned memory_ = 0; ///< index of the memory operand
};

bool is_canonical(std::uint64_t address) {
    return std::uint64_t(std::int64_t(address << 16) >> 16) == address;
}

/// True if `bytes` bytes at `address` cannot have been accessed, as far as the CPU said: they touch the page that it
/// named.
bool is_refused(const FaultPlace& place, std::uint64_t address, unsigned bytes) {
    if (!place.has_address) return !is_canonical(address);
    return address / page == place.address / page || (address + bytes - 1) / page == place.address / page;
}

std::uint64_t lane_bit(std::uint32_t lane) {
    return lane < 64 ? std::uint64_t(1) << lane : 0;
}

/// The lowest lane with an element that is selected and was refused.
template <typename AddressOf>
std::uint64_t first_refused(const AccessForm& form, const FaultPlace& place, const Access& access,
                            unsigned element_bytes, AddressOf&& address_of) {
    std::uint32_t lowest = AccessForm::no_lane;
    for (unsigned i = 0; i < form.lanes.size(); ++i)
        if (access.selects(i, element_bytes) && is_refused(place, address_of(i), element_bytes))
            lowest = std::min<std::uint32_t>(lowest, form.lanes[i]);
    return lane_bit(lowest);
}

} // namespace

std::uint64_t faulting_lanes(const AccessForm& form, const FaultPlace& place) {
    if (form.kind == AccessForm::Kind::noted)
        return lane_bit(place.noted_lane + (form.lanes.empty() ? 0u : form.lanes[0]));
    const std::optional<Access> access = Access::decode(place);
    if (!access) return 0;
    switch (form.kind) {
    case AccessForm::Kind::elements: {
        const std::size_t bytes = form.element_bytes * form.lanes.size();
        // LLVM widens narrow masked accesses at their end, where the mask leaves everything out.
        const bool fits = access->bytes() == bytes || (access->is_masked() && access->bytes() > bytes);
        if (access->is_gather() || !fits) return 0;
        const std::uint64_t first = access->address();
        return first_refused(form, place, *access, form.element_bytes,
                             [&](unsigned i) { return first + std::uint64_t(i) * form.element_bytes; });
    }
    case AccessForm::Kind::gather: {
        if (!access->is_gather() || access->gather_elements() != form.lanes.size()) return 0;
        return first_refused(form, place, *access, access->gather_element_bytes(),
                             [&](unsigned i) { return access->address(i); });
    }
    case AccessForm::Kind::lanes: {
        if (access->is_gather() || (form.element_bytes && access->bytes() > form.element_bytes))
            return 0; // merged with another lane's
        std::uint64_t lanes = 0;
        for (const std::uint8_t lane : form.lanes) lanes |= lane_bit(lane);
        return lanes;
    }
    case AccessForm::Kind::noted: break;
    }
    return 0;
}

} // namespace ptarmigan::translator
