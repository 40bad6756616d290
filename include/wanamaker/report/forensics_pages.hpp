// Examples for reading: a page with tokens coloured by δ and underlined by route, complete in one
// HTML file without scripts; and the same for terminals.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/forensics_json.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// How many shades δ has on either side of 0.
inline constexpr int shades = 4;

/// The 90th percentile of |δ|, which has the darkest shade; 1 where all are 0.
inline double delta_scale(const ForensicsLayer& layer) {
  std::vector<double> sizes;
  for (const double d : layer.delta) sizes.push_back(std::abs(d));
  if (sizes.empty()) return 1;
  std::sort(sizes.begin(), sizes.end());
  const double scale = sorted_quantile(sizes, 0.9);
  return scale > 0 ? scale : 1;
}

/// −4 … 4: below 0 the linear map does better, above it the MLP is needed.
inline int shade_of(double delta, double scale) {
  const double share = std::clamp(delta / scale, -1.0, 1.0);
  return static_cast<int>(std::lround(share * shades));
}

/// The tokens' texts: characters that several tokens spell together are the last one's.
inline std::vector<std::string> texts_of(const Passage& passage,
                                         std::span<const std::string> spellings) {
  std::vector<std::string> texts;
  Utf8Stream characters;
  for (const TokenId token : passage.tokens) {
    const std::size_t at = static_cast<std::size_t>(token);
    texts.push_back(at < spellings.size() ? characters.add(spellings[at])
                                          : "#" + std::to_string(token) + " ");
  }
  if (!texts.empty()) texts.back() += characters.finish();
  return texts;
}

inline std::string page_style() {
  return "<style>\n"
         ":root { color-scheme: light dark; --mlp: 213, 94, 0; --map: 0, 114, 178 }\n"
         "body { font: 16px/1.9 Georgia, serif; max-width: 48em; margin: 2em auto; padding: 0 1em "
         "}\n"
         "h1, h2, h3, table, .note { font-family: sans-serif; line-height: 1.4 }\n"
         "table { border-collapse: collapse; font-size: 14px } td, th { padding: 2px 10px; "
         "text-align: left }\n"
         "p.text { white-space: pre-wrap }\n"
         "span { border-bottom: 2px solid transparent; padding: 1px 0 }\n"
         ".r { border-bottom-color: rgb(var(--map)) }\n"
         ".p1 { background: rgba(var(--mlp), .15) } .p2 { background: rgba(var(--mlp), .3) }\n"
         ".p3 { background: rgba(var(--mlp), .45) } .p4 { background: rgba(var(--mlp), .65) }\n"
         ".m1 { background: rgba(var(--map), .15) } .m2 { background: rgba(var(--map), .3) }\n"
         ".m3 { background: rgba(var(--map), .45) } .m4 { background: rgba(var(--map), .65) }\n"
         "</style>\n";
}

inline std::string shade_class(int shade) {
  if (shade == 0) return "";
  return (shade > 0 ? "p" : "m") + std::to_string(std::abs(shade));
}

/// Markup replaced; line feeds stay, and are shown.
inline std::string page_text(const std::string& text) {
  std::string shown;
  std::size_t begin = 0;
  for (std::size_t feed; (feed = text.find('\n', begin)) != text.npos; begin = feed + 1) {
    shown += xml_text(text.substr(begin, feed - begin)) + "↵\n";
  }
  return shown + xml_text(text.substr(begin));
}

inline std::string types_table(const ForensicsLayer& layer,
                               std::span<const std::string> spellings) {
  std::string rows =
      "<table><tr><th>to the map</th><th>mean δ</th><th>to the MLP</th><th>mean δ</th></tr>\n";
  const auto cells = [&](const std::vector<TypeScore>& types, std::size_t i) {
    if (i >= types.size()) return std::string("<td></td><td></td>");
    return "<td>" + xml_text(token_label(types[i].type, spellings)) + "</td><td>" +
           signed_text(types[i].delta, 3) + "</td>";
  };
  for (std::size_t i = 0; i < std::max(layer.top.size(), layer.bottom.size()); ++i) {
    rows += "<tr>" + cells(layer.top, i) + cells(layer.bottom, i) + "</tr>\n";
  }
  return rows + "</table>\n";
}

/// One passage at one layer; `at`: the number of its first position among all.
inline std::string passage_markup(const ForensicsLayer& layer, const Passage& passage,
                                  std::size_t at, std::span<const std::string> spellings) {
  const double scale = delta_scale(layer);
  const std::vector<std::string> texts = texts_of(passage, spellings);
  std::string html = "<p class=\"text\">";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const double delta = layer.delta[at + i];
    const double probability = layer.probability[at + i];
    std::string style = shade_class(shade_of(delta, scale));
    if (probability > 0.5) style += style.empty() ? "r" : " r";
    html += "<span class=\"" + style + "\" title=\"δ " + signed_text(delta, 3) + " nats on " +
            xml_text(token_label(passage.targets[i], spellings)) + "; gate " +
            fixed_text(probability, 2) + "\">" + page_text(texts[i]) + "</span>";
  }
  return html + "</p>\n";
}

inline std::string layer_markup(const ForensicsResult& result, const ForensicsLayer& layer,
                                std::span<const std::string> spellings) {
  std::string html =
      "<h2 id=\"layer-" + std::to_string(layer.layer) + "\">Layer " + std::to_string(layer.layer) +
      "</h2>\n<p class=\"note\">The gate sends " + percent_text(layer.fraction_linear) +
      " of all positions to the linear map; its AUC is " + fixed_or_dash(layer.auc, 3) +
      ". Darkest: |δ| of " + fixed_text(delta_scale(layer), 3) + " nats and more.</p>\n";
  std::size_t at = 0;
  for (const Passage& passage : result.passages) {
    html += "<h3>Document " + std::to_string(passage.document) + "</h3>\n" +
            passage_markup(layer, passage, at, spellings);
    at += passage.tokens.size();
  }
  return html + "<h3>Ends of the gate's direction</h3>\n" + types_table(layer, spellings);
}

}  // namespace detail

/// One sentence that says what is seen.
inline std::string forensics_headline(const ForensicsResult& r) {
  return r.model.name + ": " + std::to_string(r.passages.size()) +
         " passages that no fit has seen, token by token. δ is what the linear map costs at a "
         "position, on the token that follows; ρ of types is between the gate's mean logit and "
         "mean δ over tokens, function words are their mean logit less that of others:";
}

/// The page. The same result gives the same bytes.
inline std::string forensics_html(const ForensicsResult& result,
                                  std::span<const std::string> spellings) {
  const std::string title =
      detail::xml_text(result.model.name) + ": where the MLP's nonlinearity is needed";
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      title + "</title>\n" + detail::page_style() + "</head>\n<body>\n<h1>" + title +
      "</h1>\n<p class=\"note\">At each token: <span class=\"p3\">orange</span> where the linear "
      "map in the layer's MLP's place makes the next token less likely (δ &gt; 0), <span "
      "class=\"m3\">blue</span> where it makes it likelier; <span class=\"r\">underlined</span> "
      "where a logistic gate sends the position to the map. Point at a token for its figures. The "
      "texts are documents that neither map nor gate was fitted on.</p>\n<p class=\"note\">";
  for (const ForensicsLayer& layer : result.layers) {
    const std::string number = std::to_string(layer.layer);
    html += "<a href=\"#layer-" + number + "\">layer " + number + "</a> ";
  }
  html += "</p>\n";
  for (const ForensicsLayer& layer : result.layers) {
    html += detail::layer_markup(result, layer, spellings);
  }
  return html + "</body>\n</html>\n";
}

/// One layer's first passage for a terminal: with colours as on the page, or without: positions
/// that the gate leaves to the MLP in brackets, + and − after tokens of the darkest shades.
inline std::string forensics_text(const ForensicsResult& result, const ForensicsLayer& layer,
                                  std::span<const std::string> spellings, bool colours) {
  // 256-colour backgrounds; black on them can be read on dark and light terminals.
  constexpr int orange[] = {230, 223, 216, 208};
  constexpr int blue[] = {195, 153, 117, 75};
  std::string shown = "layer " + std::to_string(layer.layer) + ": ";
  if (result.passages.empty()) return shown + "\n";
  const Passage& passage = result.passages.front();
  const std::vector<std::string> texts = detail::texts_of(passage, spellings);
  const double scale = detail::delta_scale(layer);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const int shade = detail::shade_of(layer.delta[i], scale);
    const bool is_routed = layer.probability[i] > 0.5;
    std::string text = terminal_text(texts[i]);
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (colours) {
      std::string codes = is_routed ? "4" : "24";
      if (shade != 0) {
        const int colour = (shade > 0 ? orange : blue)[std::abs(shade) - 1];
        codes += ";30;48;5;" + std::to_string(colour);
      }
      shown += "\x1b[" + codes + "m" + text + "\x1b[0m";
    } else {
      shown += is_routed ? text : "[" + text + "]";
      if (std::abs(shade) == detail::shades) shown += shade > 0 ? "+" : "−";
    }
  }
  return shown + "\n";
}

}  // namespace wanamaker::inline WANAMAKER_ABI
