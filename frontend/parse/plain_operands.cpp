// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/plain_operands.h"

#include "frontend/parse/character_classes.h"

namespace ptarmigan::ptx {

namespace {

constexpr std::ptrdiff_t max_digits = 18; ///< so that the number has 63 bits
constexpr std::size_t max_nodes = 64;     ///< longer lists are no compiler's

class PlainReader {
public:
    PlainReader(const char* at, const char* end, std::uint32_t line, const char* line_start,
                std::vector<OperandSyntax>& nodes)
        : at_(at), end_(end), line_start_(line_start), line_(line), nodes_(nodes) {}

    /// Where the text goes on behind the `;`, or null.
    const char* statement(std::uint32_t& count) {
        nodes_.clear();
        count = 0;
        do {
            skip_blanks();
            ++count;
            if (at_ >= end_ || nodes_.size() > max_nodes) return nullptr;
            if (*at_ == '[' ? !address() : *at_ == '{' ? !braces() : !element()) return nullptr;
            skip_blanks();
        } while (accept(','));
        return accept(';') ? at_ : nullptr;
    }

private:
    void skip_blanks() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
    }

    bool accept(char c) {
        if (at_ >= end_ || *at_ != c) return false;
        ++at_;
        return true;
    }

    OperandSyntax& append(OperandSyntax::Kind kind, const char* begin) {
        OperandSyntax& node = nodes_.emplace_back();
        node.kind = kind;
        node.location = {line_, static_cast<std::uint32_t>(begin - line_start_) + 1};
        return node;
    }

    /// A name or a constant. What follows is for the caller to check: `|`, `.x`, `[` and operators are not plain.
    bool element() { return at_ < end_ && is_class(*at_, identifier_start) ? name() : constant(); }

    bool name() {
        const char* begin = at_;
        at_ = identifier_end(at_ + 1, end_);
        const std::string_view text(begin, static_cast<std::size_t>(at_ - begin));
        if (text.size() == 1 && *begin == '%') return false;
        if (*begin == 'W' && text == "WARP_SZ") return false;
        append(OperandSyntax::Kind::name, begin).name = text;
        return true;
    }

    bool decimal(std::uint64_t& value) {
        const char* begin = at_;
        value = 0;
        for (; at_ < end_ && is_class(*at_, digit); ++at_) value = value * 10 + static_cast<unsigned char>(*at_ - '0');
        return at_ != begin && at_ - begin <= max_digits && (*begin != '0' || at_ - begin == 1) && ends_number();
    }

    /// A letter or a point would make another number of it.
    bool ends_number() const { return at_ < end_ && *at_ != '.' && !is_class(*at_, identifier_part); }

    bool bit_pattern(Constant& constant) {
        const bool is_float = at_[1] == 'f' || at_[1] == 'F';
        const char* begin = at_ += 2;
        for (; at_ < end_ && is_class(*at_, hex_digit); ++at_)
            constant.bits =
                constant.bits << 4 | static_cast<unsigned>(*at_ <= '9' ? *at_ - '0' : (*at_ | 0x20) - 'a' + 10);
        constant.kind = is_float ? Constant::Kind::bits32 : Constant::Kind::bits64;
        return at_ - begin == (is_float ? 8 : 16) && ends_number();
    }

    bool constant() {
        const char* begin = at_;
        Constant constant;
        if (end_ - at_ > 2 && at_[0] == '0' && ((at_[1] | 0x20) == 'f' || (at_[1] | 0x20) == 'd')) {
            if (!bit_pattern(constant)) return false;
        } else {
            const bool minus = accept('-');
            if (!decimal(constant.bits)) return false;
            constant.kind = Constant::Kind::integer;
            if (minus) constant.bits = 0 - constant.bits;
        }
        append(OperandSyntax::Kind::constant, begin).constant = constant;
        return true;
    }

    /// [name], [name+4], [name+-4]
    bool address() {
        append(OperandSyntax::Kind::bracket, at_++);
        const std::size_t bracket = nodes_.size() - 1;
        if (at_ >= end_ || !is_class(*at_, identifier_start) || !name()) return false;
        if (accept('+')) {
            const bool minus = accept('-');
            std::uint64_t offset;
            if (!decimal(offset)) return false;
            nodes_.back().has_offset = true;
            nodes_.back().constant = {Constant::Kind::integer, false, minus ? 0 - offset : offset};
        }
        if (!accept(']')) return false;
        nodes_[bracket].children = 1;
        nodes_[bracket].extent = 2;
        return true;
    }

    bool braces() {
        append(OperandSyntax::Kind::braces, at_++);
        const std::size_t first = nodes_.size();
        do {
            skip_blanks();
            if (nodes_.size() > max_nodes || !element()) return false;
            skip_blanks();
        } while (accept(','));
        if (!accept('}')) return false;
        const auto count = static_cast<std::uint32_t>(nodes_.size() - first);
        nodes_[first - 1].children = count;
        nodes_[first - 1].extent = count + 1;
        return true;
    }

    const char* at_;
    const char* end_;
    const char* line_start_;
    std::uint32_t line_;
    std::vector<OperandSyntax>& nodes_;
};

} // namespace

const char* read_plain_operands(const char* at, const char* end, std::uint32_t line, const char* line_start,
                                std::vector<OperandSyntax>& nodes, std::uint32_t& count) {
    return PlainReader(at, end, line, line_start, nodes).statement(count);
}

const char* read_plain_number(const char* at, const char* end, std::uint64_t& value) {
    const char* begin = at;
    value = 0;
    for (; at < end && is_class(*at, digit); ++at) value = value * 10 + static_cast<unsigned char>(*at - '0');
    const std::ptrdiff_t digits = at - begin;
    if (digits == 0 || digits > max_digits || (*begin == '0' && digits > 1) || at >= end) return nullptr;
    return *at == ',' || *at == '}' ? at : nullptr;
}

} // namespace ptarmigan::ptx
