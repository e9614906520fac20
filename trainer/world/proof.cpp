#include "trainer/world/proof.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "trainer/world/message.h"
#include "trainer/world/place.h"

namespace shardscope::trainer::world {

std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return bytes;
}

std::string proof(std::string_view token, Side side, const Nonces& nonces, std::string_view text) {
    const std::string all = MessageWriter()
                                .add(static_cast<std::int64_t>(side))
                                .add(nonces.visitor)
                                .add(nonces.rank_0)
                                .rest(text)
                                .take();
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned size = 0;
    if (::HMAC(::EVP_sha256(), token.empty() ? "" : token.data(), static_cast<int>(token.size()),
               reinterpret_cast<const unsigned char*>(all.data()), all.size(), code.data(),
               &size) == nullptr ||
        size != kProofBytes)
        throw WorldError("OpenSSL's SHA-256 cannot be used; see whether its configuration forbids it");
    return {reinterpret_cast<const char*>(code.data()), size};
}

bool take_proof(std::string_view token, Side side, const Nonces& nonces, std::string_view& message) {
    if (message.size() < kProofBytes) return false;
    const std::string_view text = message.substr(kProofBytes);
    const std::string right = proof(token, side, nonces, text);
    if (::CRYPTO_memcmp(right.data(), message.data(), kProofBytes) != 0) return false;
    message = text;
    return true;
}

}  // namespace shardscope::trainer::world
