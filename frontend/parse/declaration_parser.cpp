// SPDX-License-Identifier: Apache-2.0
#include "frontend/parse/declaration_parser.h"

#include "frontend/isa/words.h"
#include "frontend/parse/operand_parser.h"

namespace ptarmigan::ptx {

namespace {

constexpr std::uint64_t max_alignment = 1u << 20;
constexpr std::uint32_t max_dimensions = 1024; ///< ptxas takes 1,000 and loops at 20,000

/// Of the types that declarations have.
std::string nearest_type(std::string_view written) {
    NearestSpelling nearest(written);
    for (unsigned i = 1; i <= static_cast<unsigned>(ScalarType::f64); ++i) {
        const auto type = static_cast<ScalarType>(i);
        if (type != ScalarType::bf16 && type != ScalarType::tf32) nearest.offer(spelling(type));
    }
    return nearest.question(".");
}

/// What may follow a .func without a body.
bool begins_declaration(const Token& token) {
    if (token.kind == TokenKind::end) return true;
    if (token.kind != TokenKind::word) return false;
    for (const std::string_view word :
         {"func", "entry", "visible", "extern", "weak", "common", "align", "file", "section"})
        if (token.text == word) return true;
    return find_word(token.text).kind == Word::Kind::space;
}

class DeclarationParser {
public:
    explicit DeclarationParser(TokenCursor& cursor) : cursor_(cursor) {}

    void variables(VariableSyntax& out) {
        words(out);
        if (cursor_.accept(';')) return; // declares nothing: ptxas takes it
        do declarator(out, true);
        while (cursor_.accept(','));
        cursor_.expect(';', "at the end of this declaration");
    }

    void function(bool is_entry, FunctionSyntax& out) {
        out.is_entry = is_entry;
        if (!is_entry) {
            if (cursor_.peek().is_word("attribute")) {
                VariableSyntax attributes;
                attribute(attributes);
                out.unified = attributes.unified;
            }
            if (cursor_.at('(')) parameters(out.returns);
        }
        out.location = cursor_.location();
        out.name =
            cursor_.expect_name(is_entry ? "the name of a kernel (it has no results)" : "the name of a function");
        if (cursor_.at('(')) parameters(out.parameters);
        if (!is_entry) named_parameters(out);
        limits(out);
        if (cursor_.at('{')) {
            out.has_body = true;
            out.body = cursor_.skip_body(&out.is_closed, &out.body_end);
        } else if (is_entry || !begins_declaration(cursor_.peek())) { // else ptxas misses no `;`
            cursor_.expect(';', "or '{' after this function's head");
        }
    }

    void prototype(FunctionSyntax& out) {
        out.location = cursor_.location();
        if (cursor_.at('(')) parameters(out.returns);
        out.name = cursor_.expect_identifier("'_'");
        if (cursor_.at('(')) parameters(out.parameters);
        limits(out);
        cursor_.expect(';', "at the end of this prototype");
    }

private:
    void words(VariableSyntax& out) {
        out.location = cursor_.location();
        while (cursor_.peek().kind == TokenKind::word) {
            const Token word = cursor_.peek();
            if (word.text == "attribute") {
                attribute(out);
                continue;
            }
            cursor_.take();
            if (word.text == "align") {
                out.alignment = alignment();
            } else if (word.text == "ptr") {
                pointer(out);
            } else {
                classify(word, out);
            }
        }
        if (out.space == StateSpace::none) cursor_.fail(out.location, "a declaration needs a state space");
        if (out.type == ScalarType::none) cursor_.fail_here("a type such as .u32");
    }

    void classify(const Token& token, VariableSyntax& out) {
        const Word word = find_word(token.text);
        if (word.kind == Word::Kind::space && out.space == StateSpace::none) {
            out.space = space_of(word);
            if (out.space == StateSpace::constant && cursor_.accept('[')) {
                out.bank = static_cast<std::uint32_t>(cursor_.expect_count("a bank number"));
                cursor_.expect(']', "behind the bank");
            }
        } else if (word.kind == Word::Kind::type && out.type == ScalarType::none) {
            out.type = static_cast<ScalarType>(word.value);
        } else if (word.kind == Word::Kind::vector && out.vector_size == 1) {
            out.vector_size = static_cast<std::uint8_t>(word.value);
        } else {
            cursor_.fail(token.location, word.kind == Word::Kind::unknown
                                             ? "unknown type " + describe(token) + nearest_type(token.text)
                                             : "unexpected " + describe(token) + " in a declaration");
        }
    }

    std::uint32_t alignment() {
        const SourceLocation at = cursor_.location();
        const std::uint64_t value = cursor_.expect_integer("an alignment");
        if (value == 0 || value > max_alignment || (value & (value - 1)) != 0)
            cursor_.fail(at, "an alignment must be a power of two up to 1048576");
        return static_cast<std::uint32_t>(value);
    }

    void pointer(VariableSyntax& out) {
        out.is_pointer = true;
        if (cursor_.peek().kind == TokenKind::word) {
            const Word word = find_word(cursor_.peek().text);
            if (word.kind == Word::Kind::space) {
                out.pointee_space = space_of(word);
                cursor_.take();
            }
        }
        out.pointee_alignment = 4; // what the manual gives when no .align follows
        if (cursor_.accept_word("align")) out.pointee_alignment = alignment();
    }

    /// .attribute(.managed), .attribute(.unified(a, b)), or several.
    void attribute(VariableSyntax& out) {
        cursor_.take();
        cursor_.expect('(', "behind .attribute");
        do {
            const Token word = cursor_.take();
            if (word.is_word("managed")) {
                out.managed = true;
            } else if (word.is_word("unified")) {
                cursor_.expect('(', "behind .unified");
                cursor_.expect_count("a number");
                cursor_.expect(',', "between the numbers of .unified");
                cursor_.expect_count("a number");
                cursor_.expect(')', "behind the numbers of .unified");
                out.unified = true;
            } else {
                cursor_.fail(word.location, "unknown attribute " + describe(word));
            }
        } while (cursor_.accept(','));
        cursor_.expect(')', "behind the attribute");
    }

    void declarator(VariableSyntax& out, bool may_initialise) {
        DeclaratorSyntax d;
        d.location = cursor_.location();
        d.name = cursor_.peek().is_identifier("_") ? cursor_.take().text : cursor_.expect_name("a name");
        if (d.name == "_" && may_initialise) cursor_.fail(d.location, "'_' is no name");
        if (cursor_.accept('<')) {
            d.is_range = true;
            d.range = cursor_.expect_integer("a count"); // `>` would be taken for an operator
            cursor_.expect('>', "behind the count");
        }
        d.first_dimension = static_cast<std::uint32_t>(out.dimensions.size());
        while (cursor_.accept('[')) {
            const SourceLocation at = cursor_.location();
            if (++d.dimension_count > max_dimensions) cursor_.fail(at, "an array has 1024 dimensions at most");
            out.dimensions.push_back(cursor_.at(']') ? 0 : cursor_.expect_integer("an array size"));
            if (out.dimensions.back() == 0 && d.dimension_count > 1)
                cursor_.fail(at, "only the first dimension of an array may be left out");
            cursor_.expect(']', "behind the array size");
        }
        d.first_initializer = static_cast<std::uint32_t>(out.initializers.size());
        d.has_initializer = may_initialise && cursor_.accept('=');
        out.declarators.push_back(d); // an error in what follows is none about the name
        if (d.has_initializer) parse_initializer_of(out);
    }

    void parse_initializer_of(VariableSyntax& out) {
        if (out.type == ScalarType::samplerref || out.type == ScalarType::texref || out.type == ScalarType::surfref)
            return opaque_initializer();
        parse_initializer(cursor_, out.initializers);
    }

    /// { addr_mode_0 = wrap, filter_mode = nearest }: read and dropped, such variables are
    /// unsupported by name where used.
    void opaque_initializer() {
        cursor_.expect('{', "behind '='");
        do {
            cursor_.expect_identifier("a property");
            cursor_.expect('=', "behind the property");
            if (cursor_.peek().kind == TokenKind::identifier)
                cursor_.take();
            else
                parse_constant(cursor_);
        } while (cursor_.accept(','));
        cursor_.expect('}', "behind the properties");
    }

    void parameters(std::vector<VariableSyntax>& out) {
        cursor_.expect('(', "before the parameters");
        if (cursor_.accept(')')) return;
        do {
            VariableSyntax parameter;
            words(parameter);
            declarator(parameter, false);
            out.push_back(std::move(parameter));
        } while (cursor_.accept(','));
        if (cursor_.peek().kind == TokenKind::word) cursor_.fail_here("',' or ')' behind this parameter");
        cursor_.expect(')', "behind the parameters");
    }

    /// `_` stands for a parameter in prototypes, and in those of entries.
    void named_parameters(const FunctionSyntax& function) {
        for (const std::vector<VariableSyntax>* list : {&function.returns, &function.parameters})
            for (const VariableSyntax& parameter : *list)
                if (const DeclaratorSyntax& d = parameter.declarators.front(); d.name == "_")
                    cursor_.diagnostics().error(d.location, "'_' is no name for a parameter of a function");
    }

    /// A literal or WARP_SZ, as no constant expression stands behind these directives.
    std::uint64_t limit_value() {
        const SourceLocation at = cursor_.location();
        const std::uint64_t value = cursor_.expect_integer("a number");
        if (value > 0xffffffffu) cursor_.fail(at, "this number has more than 32 bits");
        return value;
    }

    void limits(FunctionSyntax& out) {
        while (cursor_.peek().kind == TokenKind::word && (out.is_entry || !begins_declaration(cursor_.peek()))) {
            const Token word = cursor_.take();
            if (word.text == "noreturn") {
                out.noreturn = true;
                continue;
            }
            if (word.text == "pragma") {
                if (cursor_.peek().kind != TokenKind::string) cursor_.fail_here("a string");
                do {
                    if (cursor_.take().kind != TokenKind::string)
                        cursor_.fail(word.location, "a .pragma takes strings");
                } while (cursor_.accept(','));
                cursor_.accept(';');
                continue;
            }
            if (word.text == "attribute")
                cursor_.fail(word.location, "'.attribute' stands in front of a function's name");
            LimitSyntax limit{word.text, {}, word.location};
            if (cursor_.peek().kind == TokenKind::integer || cursor_.peek().is_identifier("WARP_SZ")) {
                do limit.values.push_back(limit_value());
                while (cursor_.accept(','));
            }
            out.limits.push_back(std::move(limit));
        }
    }

    TokenCursor& cursor_;
};

} // namespace

void parse_variables(TokenCursor& cursor, VariableSyntax& out) {
    DeclarationParser(cursor).variables(out);
}
void parse_function(TokenCursor& cursor, bool is_entry, FunctionSyntax& out) {
    DeclarationParser(cursor).function(is_entry, out);
}
void parse_prototype(TokenCursor& cursor, FunctionSyntax& out) {
    DeclarationParser(cursor).prototype(out);
}

} // namespace ptarmigan::ptx
