// SHA-256 against the examples of FIPS 180-4 and of NIST's CAVP.
#include "wanamaker/core/hash.hpp"

#include <string>

#include "testing.hpp"

using wanamaker::Sha256;
using wanamaker::sha256_hex;

TEST_CASE("SHA-256 gives the published digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("how the bytes are cut does not matter, at any length around a block") {
  for (std::size_t size = 0; size < 200; ++size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i * 7 + 3);
    for (std::size_t cut = 0; cut <= size; cut += 13) {
      Sha256 hash;
      hash.update(text.substr(0, cut)).update(text.substr(cut));
      CHECK(hash.hex() == sha256_hex(text));
      CHECK(hash.hex() == sha256_hex(text));  // hex() leaves the state alone
    }
  }
}

TEST_CASE("fields and numbers cannot run into each other") {
  CHECK(Sha256().update_field("ab").update_field("c").hex() !=
        Sha256().update_field("a").update_field("bc").hex());
  CHECK(Sha256().update_number(0x0807060504030201u).hex() ==
        sha256_hex("\x01\x02\x03\x04\x05\x06\x07\x08"));
}
