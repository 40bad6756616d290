// Texts in every form, plain, gzip and zstd: whatever is accepted is documents in order, valid
// UTF-8 of bounded size. The first byte of an input chooses form and options.
#include "wanamaker/text/corpus.hpp"

#include "fuzz/fuzzing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

constexpr std::size_t largest = std::size_t{1} << 18;

struct CorpusForm {
  const char* file;
  CorpusFormat format;
  std::optional<std::string> field{};
};

/// By the first byte, from 'a' on.
const std::vector<CorpusForm>& corpus_forms() {
  static const std::vector<CorpusForm> forms{{"f.txt", CorpusFormat::automatic},
                                             {"f.txt", CorpusFormat::plain_text},
                                             {"f.txt", CorpusFormat::wikitext},
                                             {"f.jsonl", CorpusFormat::automatic},
                                             {"f.jsonl", CorpusFormat::automatic, "/a/0"},
                                             {"f.csv", CorpusFormat::automatic},
                                             {"f.csv", CorpusFormat::automatic, "b"},
                                             {"f.json", CorpusFormat::lambada},
                                             {"f.npy", CorpusFormat::automatic},
                                             {"f.bin", CorpusFormat::automatic},
                                             {"f.bin", CorpusFormat::uint16_ids},
                                             {"f.bin", CorpusFormat::uint32_ids}};
  return forms;
}

void check_document(const Document& document, Index index) {
  must_hold(document.index == index, "a document out of order");
  must_hold(!first_invalid_utf8(document.name), "a name that is no UTF-8");
  if (!document.has_text()) {
    for (const TokenId id : document.ids()) must_hold(id >= 0, "a negative id");
    return;
  }
  must_hold(!first_invalid_utf8(document.text()), "a text that is no UTF-8");
  must_hold(document.text().size() <= largest, "a document beyond the bound");
}

void read_documents(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<std::size_t>(static_cast<unsigned char>(input[0]) - 'a' + 256);
  const CorpusForm& form = corpus_forms()[(choice & 31u) % corpus_forms().size()];
  CorpusOptions options{.format = form.format, .field = form.field, .largest_document = largest};
  if ((choice & 32u) != 0) {
    options.separator = 0;
    options.detokenisation = Detokenisation::wikitext;
  }
  const std::string_view bytes = input.substr(1);
  Index documents = 0;
  std::size_t text = 0;
  for_each_document(fuzz_file(form.file, bytes), options, [&](Document document) {
    check_document(document, documents++);
    if (document.has_text()) text += document.text().size();
  });
  must_hold(documents > 0, "a corpus without documents");
  const bool is_whole = form.format == CorpusFormat::plain_text && !options.separator &&
                        compression_of(bytes) == Compression::none;
  must_hold(!is_whole || text == bytes.size(), "a plain text that is not its file");
}

/// "hello hello" as gzip and zstd, and the same two files a second time behind it.
const std::string packed_gzip(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x00\x91\x00\x40\xa6\x2d"
    "\x01\x0b\x00\x00\x00",
    28);
const std::string packed_zstd("\x28\xb5\x2f\xfd\x20\x0b\x59\x00\x00hello hello", 20);

std::vector<std::string> corpus_seeds() {
  const std::string repeated_row = "\xfe= a =\n\xff\x0b";
  return {"aplain text\n",
          "a = Title = \n \n Prose . \n \n = Other = \n \n More @-@ over . \n",
          "cprose\n" + repeated_row,
          "C = T = \n \n he said \" yes \" ( 1 @,@ 000 ) .\n",
          "d{\"text\": \"a\", \"name\": \"n\"}\n{\"ids\": [1, 2, 3]}\n",
          "e{\"a\": [\"text\"], \"id\": 7}\n",
          "fname,text\nn,\"a \"\"quoted\"\" one\r\n\"\nm,b\n",
          "gb,id\nx,1\n",
          "h{\"text\": \"the last word\"}\n",
          std::string("j\1\0\2\0\0\0\3\0", 9),
          std::string("K\1\0\2\0\0\0\3\0", 9),
          std::string("L\1\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0", 17),
          "a" + packed_gzip + packed_gzip,
          "a" + packed_zstd + packed_zstd};
}

const FuzzRegistration corpus_target(
    {.name = "corpus",
     .read = read_documents,
     .seeds = corpus_seeds,
     // A frame of zstd may need a window of 128 MiB; a line of JSON 40 times its text.
     .bounds = {.memory_factor = 16, .memory_beside = std::size_t{192} << 20}});

}  // namespace
