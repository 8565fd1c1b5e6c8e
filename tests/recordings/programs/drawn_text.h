// SPDX-License-Identifier: Apache-2.0
// Text with pieces that are drawn by chance once all of it is there, the last piece first. C++ leaves the order of a function's
// arguments open, so that `"add.u32 " + word() + ", " + word()` would be another program with another compiler.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace random_programs {

class DrawnText {
public:
    using Draw = std::function<std::string()>;

    DrawnText(const char* text) : DrawnText(std::string(text)) {}
    DrawnText(std::string text) { pieces_.push_back({std::move(text), nullptr}); }
    explicit DrawnText(Draw draw) { pieces_.push_back({{}, std::move(draw)}); }

    /// Draws, each time anew.
    operator std::string() const {
        std::string text;
        for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) text.insert(0, piece->draw ? piece->draw() : piece->text);
        return text;
    }
    friend DrawnText operator+(DrawnText left, const DrawnText& right) {
        left.pieces_.insert(left.pieces_.end(), right.pieces_.begin(), right.pieces_.end());
        return left;
    }

private:
    struct Piece {
        std::string text;
        Draw draw; ///< instead of `text`
    };
    std::vector<Piece> pieces_;
};

} // namespace random_programs
