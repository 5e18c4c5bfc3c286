# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Sentence pairs of two languages that do not exist, for translation.

A sentence is a sequence of phrases of one to three words (PHRASES). Frequent words are drawn more often: of n words of a
kind, number k about in proportion to 1 / k. The translation is learnable, and needs attention: the sentence is
reversed, each word is replaced by a fixed one of the other language (several words may share one), and each noun
follows a classifier, which depends on the noun, as in Vietnamese.

The published size has the numbers of the English-Vietnamese pairs of IWSLT15, as Luong and Manning (2015) give them: 133
thousand pairs, 2.7 and 3.3 million words, vocabularies of 17,191 and 7,709. The distribution of the lengths is
log-normal, cut at 50 words, with that mean. The mean of the translation follows from the share of nouns.

Words are numbers. Pair number n depends only on the seed and n, like the images of synthetic.py: of the stream
(seed, 5, n), two numbers for the length, then one for each phrase and three for its words.
"""

import collections

import numpy
import synthetic

PAD, BEGIN, END = 0, 1, 2
SPECIAL = 3  # number of words that are none
STREAM_SENTENCES = 5
CHUNK = 2000  # sentences at a time

Size = collections.namedtuple("Size", "pairs source_words target_words mean_words most_words")
SIZES = {
    "small": Size(6400, 203, 123, 7, 14),
    "published": Size(133_000, 17_191, 7_709, 20.3, 50),
}

DETERMINER, PREPOSITION, NOUN, VERB, ADJECTIVE, ADVERB, NONE = range(7)
PHRASES = numpy.array([
    (DETERMINER, NOUN, NONE), (DETERMINER, ADJECTIVE, NOUN), (PREPOSITION, DETERMINER, NOUN),
    (VERB, NONE, NONE), (VERB, ADVERB, NONE), (VERB, ADVERB, NONE),
])  # fmt: skip
PHRASE_WORDS = (PHRASES != NONE).sum(1)
SPREAD = 0.62  # standard deviation of the logarithm of the length
CLASSIFIERS = 16


def kinds_of_words(words):
    """First word and number of words of each kind, in a vocabulary: int64 [6, 2]."""
    rest = words - SPECIAL - 8 - 12
    counts = [8, 12, rest // 2, rest // 4, rest // 6]
    counts.append(words - SPECIAL - sum(counts))
    first = SPECIAL + numpy.cumsum([0, *counts[:-1]])
    return numpy.stack([first, counts], 1)


def uniform(numbers):
    """Numbers above 0 and below 1. float64 of any shape."""
    return ((numbers >> numpy.uint64(11)).astype(numpy.float64) + 0.5) / 2**53


def lengths(random, size):
    """Wanted lengths from two random numbers each: int64 [sentences]."""
    first, second = uniform(random[:, 0]), uniform(random[:, 1])
    normal = numpy.sqrt(-2 * numpy.log(first)) * numpy.cos(2 * numpy.pi * second)
    middle = numpy.log(size.mean_words) - SPREAD**2 / 2
    return numpy.rint(numpy.exp(middle + SPREAD * normal)).clip(1, size.most_words - 2).astype(int)


def sources(first, count, seed, size):
    """Sentences first to first + count: words, int64 [all words]; lengths, int64 [count]; whether each is a noun."""
    phrases = size.most_words
    numbers = numpy.arange(first, first + count, dtype=numpy.uint64)
    random = synthetic.draws(seed, STREAM_SENTENCES, numbers, 2 + 4 * phrases)
    kind = synthetic.below(random[:, 2 : 2 + phrases], len(PHRASES))
    ends = PHRASE_WORDS[kind].cumsum(1)
    # A sentence ends with the first phrase that reaches its length, at most two words later.
    inside = ends - PHRASE_WORDS[kind] < lengths(random, size)[:, None]
    kinds = numpy.where(inside[..., None], PHRASES[kind], NONE).reshape(count, -1)
    place, total = kinds_of_words(size.source_words)[numpy.minimum(kinds, ADVERB)].transpose(2, 0, 1)
    rank = numpy.exp(uniform(random[:, 2 + phrases :]) * numpy.log(total + 1)).astype(int) - 1
    real = kinds != NONE
    return (place + rank.clip(0, total - 1))[real], real.sum(1), (kinds == NOUN)[real]


def translated(words, counts, nouns, size):
    """The translations of sentences as of sources(): words and lengths."""
    ends = counts.cumsum()
    order = numpy.repeat(ends + ends - counts - 1, counts) - numpy.arange(len(words))
    words, nouns = words[order], nouns[order]
    own = size.target_words - SPECIAL - CLASSIFIERS
    multiplier = next(m for m in range(own * 5 // 8, own) if numpy.gcd(m, own) == 1)
    others = SPECIAL + CLASSIFIERS + words * multiplier % own
    parts = 1 + nouns
    out = numpy.repeat(others, parts)
    places = parts.cumsum() - parts
    out[places[nouns]] = SPECIAL + words[nouns] % CLASSIFIERS
    sentence = numpy.repeat(numpy.arange(len(counts)), counts)
    return out, counts + numpy.bincount(sentence, nouns, len(counts)).astype(int)


class Pairs:
    """Sentences and translations, without PAD, BEGIN and END.

    source, target: int32 [all words]; source_ends, target_ends: int64 [pairs + 1], where pair n is from ends[n] to
    ends[n + 1].
    """

    def __init__(self, count, seed, size, first=0):
        parts = []
        for start in range(first, first + count, CHUNK):
            words, counts, nouns = sources(start, min(CHUNK, first + count - start), seed, size)
            parts.append((words, counts, *translated(words, counts, nouns, size)))
        words, counts, others, other_counts = map(numpy.concatenate, zip(*parts))
        self.source, self.target = words.astype(numpy.int32), others.astype(numpy.int32)
        self.source_ends = numpy.concatenate([[0], counts.cumsum()])
        self.target_ends = numpy.concatenate([[0], other_counts.cumsum()])

    def __len__(self):
        return len(self.source_ends) - 1

    def __getitem__(self, number):
        """Words of a sentence and of its translation: int32 [words]."""
        source = self.source[self.source_ends[number] : self.source_ends[number + 1]]
        return source, self.target[self.target_ends[number] : self.target_ends[number + 1]]
