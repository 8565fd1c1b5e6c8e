// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/form_pattern.h"
#include "frontend/isa/row_decoder.h"

#include <algorithm>
#include <charconv>

namespace ptarmigan::ptx {

namespace {

#define PTM_TEXT(...) PTM_TEXT_OF(__VA_ARGS__)
#define PTM_TEXT_OF(...) #__VA_ARGS__

constexpr RawRow make_row(FormId id, std::string_view name, std::string_view syntax, std::string_view where,
                          std::uint8_t major, std::uint8_t minor, std::string_view sm, Effects effects, ShapeRule shape,
                          bool lowered, std::string_view lowering, std::string_view section, std::string_view chapter) {
    return {id, name, syntax, where, major, minor, sm, effects, shape, lowered, lowering, section, chapter};
}

std::span<const RawRow> raw_rows() {
    using enum Effects;
#define PTX(major, minor) major, minor
#define SM(target) #target
#define LOWER(handler) true, #handler
#define UNSUPPORTED(reason) false, reason
#define PTX_FORM(id, syntax, where, since, sm, effects, shape, lowering, section)                                      \
    make_row(FormId::id, #id, syntax, where, since, sm, effects, ShapeRule::shape, lowering, section,                  \
             PTM_TEXT(PTX_CHAPTER)),
    static constexpr RawRow rows[] = {
#include "frontend/isa/instruction_table.def"
    };
#undef PTX_FORM
#undef UNSUPPORTED
#undef LOWER
#undef SM
#undef PTX
    return rows;
}

std::size_t hash(std::string_view text) {
    std::uint32_t h = 2166136261u;
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return h ^ h >> 15;
}

} // namespace

FormTable::FormTable() {
    const std::span<const RawRow> rows = raw_rows();
    struct Range {
        std::size_t slots, operands;
    };
    std::vector<Range> starts;
    std::vector<std::size_t> first_words;
    infos_.reserve(rows.size());
    patterns_.resize(rows.size());
    words_.reserve(rows.size() * 24);
    slots_.reserve(rows.size() * 6);
    operand_patterns_.reserve(rows.size() * 4);
    operand_infos_.reserve(rows.size() * 4);
    starts.reserve(rows.size() + 1);
    first_words.reserve(rows.size() * 6);

    DecodedRow decoded;
    for (const RawRow& row : rows) {
        decode_row(row, decoded, faults_);
        starts.push_back({slots_.size(), operand_patterns_.size()});
        for (const DecodedRow::Slot& slot : decoded.slots) {
            slots_.push_back(slot.slot);
            first_words.push_back(words_.size() + slot.first_word);
        }
        words_.insert(words_.end(), decoded.words.begin(), decoded.words.end());
        for (std::size_t i = 0; i < decoded.operands.size(); ++i) {
            const OperandPattern& p = decoded.operands[i];
            operand_patterns_.push_back(p);
            operand_infos_.push_back({p.role, p.is_destination, p.optional, decoded.constraint_texts[i]});
        }
        std::uint16_t sm = 0;
        const char* last = row.sm.data() + row.sm.size();
        const char* end = std::from_chars(row.sm.data(), last, sm).ptr;
        patterns_[infos_.size()].arch_specific = end != last;
        infos_.push_back({row.id,
                          row.name,
                          decoded.opcode,
                          row.syntax,
                          {},
                          Effects(std::uint32_t(row.effects) & ~std::uint32_t(Effects::rounds)),
                          any(row.effects, Effects::rounds),
                          row.shape,
                          row.lowered,
                          row.lowered ? std::string_view{} : row.lowering,
                          row.ptx_major,
                          row.ptx_minor,
                          sm,
                          row.sm,
                          row.section,
                          row.chapter});
    }
    // Spans can be set only now: the vectors have moved while they grew.
    starts.push_back({slots_.size(), operand_patterns_.size()});
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const std::size_t end = i + 1 < slots_.size() ? first_words[i + 1] : words_.size();
        slots_[i].choices = {words_.data() + first_words[i], end - first_words[i]};
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t operands = starts[i + 1].operands - starts[i].operands;
        patterns_[i].info = &infos_[i];
        patterns_[i].slots = {slots_.data() + starts[i].slots, starts[i + 1].slots - starts[i].slots};
        patterns_[i].operands = {operand_patterns_.data() + starts[i].operands, operands};
        infos_[i].operands = {operand_infos_.data() + starts[i].operands, operands};
    }
    index_opcodes();
}

void FormTable::index_opcodes() {
    by_opcode_.reserve(infos_.size());
    for (const FormInfo& info : infos_) by_opcode_.push_back(info.id);
    std::stable_sort(by_opcode_.begin(), by_opcode_.end(), [&](FormId a, FormId b) {
        return infos_[static_cast<std::size_t>(a)].opcode < infos_[static_cast<std::size_t>(b)].opcode;
    });
    std::size_t buckets = 256;
    while (buckets < by_opcode_.size() * 2) buckets *= 2;
    opcodes_.resize(buckets);
    for (std::uint32_t i = 0; i < by_opcode_.size();) {
        const std::string_view opcode = infos_[static_cast<std::size_t>(by_opcode_[i])].opcode;
        std::uint32_t end = i;
        while (end < by_opcode_.size() && infos_[static_cast<std::size_t>(by_opcode_[end])].opcode == opcode) ++end;
        std::size_t at = hash(opcode) & (buckets - 1);
        while (!opcodes_[at].opcode.empty()) at = (at + 1) & (buckets - 1);
        opcodes_[at] = {opcode, i, end - i};
        i = end;
    }
}

const FormTable& FormTable::get() {
    static const auto* table = new FormTable; // never destroyed: texts may be read while the process exits
    return *table;
}

std::span<const FormId> FormTable::rows_of(std::string_view opcode) const {
    const std::size_t mask = opcodes_.size() - 1;
    for (std::size_t at = hash(opcode) & mask; !opcodes_[at].opcode.empty(); at = (at + 1) & mask)
        if (opcodes_[at].opcode == opcode) return {by_opcode_.data() + opcodes_[at].first, opcodes_[at].count};
    return {};
}

NearestSpelling FormTable::nearest_opcode(std::string_view spelling, std::span<const std::string_view> words) const {
    const auto takes = [&](std::span<const FormId> rows, Word word) {
        return std::any_of(rows.begin(), rows.end(), [&](FormId form) {
            const auto slots = pattern(form).slots;
            return std::any_of(slots.begin(), slots.end(), [&](const WordSlot& slot) {
                return std::find(slot.choices.begin(), slot.choices.end(), word) != slot.choices.end();
            });
        });
    };
    NearestSpelling nearest(spelling);
    for (const OpcodeEntry& entry : opcodes_) {
        const std::span<const FormId> rows = rows_of(entry.opcode);
        const bool goes = std::all_of(words.begin(), words.end(), [&](std::string_view spelt) {
            const Word word = find_word(spelt);
            return word.kind == Word::Kind::unknown || takes(rows, word);
        });
        if (goes) nearest.offer(entry.opcode);
    }
    return nearest;
}

const FormInfo& form_info(FormId id) {
    static const FormInfo* const first = FormTable::get().infos().data(); // asked for each operand again and again
    return first[static_cast<std::size_t>(id)];
}
std::span<const FormInfo> all_forms() {
    return FormTable::get().infos();
}

} // namespace ptarmigan::ptx
