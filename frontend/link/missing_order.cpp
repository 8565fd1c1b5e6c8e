// SPDX-License-Identifier: Apache-2.0
#include "frontend/link/missing_order.h"

#include "frontend/parse/lexer.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

class MissingOrder {
public:
    MissingOrder(const LinkUnit& unit, const std::vector<FunctionId>& missing)
        : unit_(unit), functions_(unit.module().functions), named_(functions_.size()), has_caller_(functions_.size()),
          is_done_(functions_.size()), is_missing_(functions_.size()) {
        for (const FunctionId id : missing) is_missing_[id] = true;
    }

    std::vector<FunctionId> run() {
        for (FunctionId id = 0; id < functions_.size(); ++id)
            if (!functions_[id].is_declaration) read_body(id);
        name_initial_values();
        for (std::size_t i = functions_.size(); i-- > 0;)
            if (!has_caller_[i]) compile(static_cast<FunctionId>(i));
        for (std::size_t i = functions_.size(); i-- > 0;)
            compile(static_cast<FunctionId>(i)); // those that call each other
        report();                                // no function at all
        return std::move(order_);
    }

private:
    void read_body(FunctionId id) {
        Diagnostics unused(unit_.source, 1);
        Lexer lexer(unit_.body(id), unused);
        for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
            if (token.kind != TokenKind::identifier) continue;
            const auto found = unit_.context.names.find(token.text);
            if (found == unit_.context.names.end() || found->second.kind != Symbol::Kind::function) continue;
            const FunctionId callee = found->second.index;
            std::vector<FunctionId>& named = named_[id];
            if (std::find(named.begin(), named.end(), callee) == named.end()) named.push_back(callee);
            if (callee != id) has_caller_[callee] = true;
        }
    }

    void name_initial_values() {
        for (const Variable& variable : unit_.module().variables)
            for (const Relocation& relocation : variable.relocations)
                if (relocation.is_function) pending_.push_back(relocation.symbol);
    }

    /// What `root` calls comes before it. Not by recursion: a chain of calls may be as long as the text.
    void compile(FunctionId root) {
        struct Call {
            FunctionId caller;
            std::size_t left; ///< of what it calls
        };
        std::vector<Call> calls;
        const auto enter = [&](FunctionId id) {
            if (functions_[id].is_declaration || is_done_[id]) return;
            is_done_[id] = true;
            calls.push_back({id, named_[id].size()});
        };
        for (enter(root); !calls.empty();) {
            Call& call = calls.back();
            if (call.left > 0) {
                enter(named_[call.caller][--call.left]);
                continue;
            }
            const std::vector<FunctionId>& named = named_[call.caller];
            pending_.insert(pending_.end(), named.begin(), named.end());
            calls.pop_back();
            report();
        }
    }

    void report() {
        std::sort(pending_.begin(), pending_.end());
        for (const FunctionId id : pending_) {
            if (is_missing_[id]) order_.push_back(id);
            is_missing_[id] = false;
        }
        pending_.clear();
    }

    const LinkUnit& unit_;
    const std::vector<Function>& functions_;
    std::vector<std::vector<FunctionId>> named_; ///< by each body, in the order of the text
    std::vector<bool> has_caller_, is_done_, is_missing_;
    std::vector<FunctionId> pending_, order_;
};

} // namespace

std::vector<FunctionId> missing_order(const LinkUnit& unit, const std::vector<FunctionId>& missing) {
    return MissingOrder(unit, missing).run();
}

} // namespace ptarmigan::ptx
