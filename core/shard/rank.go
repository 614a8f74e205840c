// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"hash/fnv"
	"math/bits"
	"slices"
)

// Weighted rendezvous hashing (Thaler and Ravishankar 1998; the weights as in Schindelhauer and Schomaker 2005): the
// pair of an owner and a member has a pseudo-random u in (0, 1], and the member with the least -log(u)/weight is the
// owner's first. A member that joins becomes the first of its share of the owners and changes nothing for the others;
// a member that leaves gives each of its owners to that owner's second.
//
// The logarithm is computed in integers. math.Log has another implementation per architecture, and two instances that
// differ in the last bit would disagree on a unit's planner.
//
// Rejected: a ring with virtual nodes, which needs some hundred entries per member for the balance that this has with
// one, and a table for each set of eligible members.

// key identifies an owner or a member in the hash.
type key uint64

func keyOf(s string) key {
	h := fnv.New64a()
	h.Write([]byte(s)) // an FNV hash has no errors
	return key(h.Sum64())
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit of x changes each bit of the result with
// probability 1/2.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// fractionBits is the precision of negLog2.
const fractionBits = 24

// negLog2 returns -log2(u / 2^64) in units of 2^-fractionBits, rounded up. u = 0 counts as 1.
// The result is at most 64 << fractionBits, i.e. below 2^31.
func negLog2(u uint64) uint64 {
	u = max(u, 1)
	zeros := bits.LeadingZeros64(u)
	m := u << zeros // the mantissa in [1, 2), in units of 2^-63
	log := uint64(63 - zeros)
	for range fractionBits {
		// Squaring doubles the logarithm: the mantissa's square is in [1, 4), and whether it reaches 2 is the next bit.
		hi, lo := bits.Mul64(m, m) // in units of 2^-126
		log <<= 1
		if hi&(1<<63) != 0 {
			log |= 1
			m = hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return 64<<fractionBits - log
}

// distance is how far a member is from being an owner's first; the least distance wins.
type distance struct {
	log    uint64 // Invariant: log < 1<<32, so that a product with a weight does not overflow.
	weight Weight
	member key // decides between equal distances
	of     Ordinal
}

func (d distance) compare(e distance) int {
	a, b := d.log*uint64(e.weight), e.log*uint64(d.weight)
	switch {
	case a < b, a == b && d.member < e.member:
		return -1
	case a == b && d.member == e.member:
		return 0
	}
	return 1
}

// Rank returns the members of a set in the order in which an owner prefers them.
func (m *Members) Rank(owner string, among Set) []Ordinal {
	distances := make([]distance, 0, among.Len())
	h := keyOf(owner)
	for i, member := range m.of {
		if member != nil && among.Has(Ordinal(i)) {
			name := keyOf(member.Name)
			u := mix(mix(uint64(h)) ^ uint64(name))
			distances = append(distances, distance{negLog2(u), member.Weight, name, Ordinal(i)})
		}
	}
	slices.SortFunc(distances, distance.compare)
	ranked := make([]Ordinal, len(distances))
	for i, d := range distances {
		ranked[i] = d.of
	}
	return ranked
}
