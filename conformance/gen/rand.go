// SPDX-License-Identifier: Apache-2.0

package gen

// Rand is a splitmix64 generator (Steele, Lea and Flood 2014). Its stream never changes, unlike
// math/rand's, so a seed in a report keeps its meaning.
type Rand struct{ state uint64 }

// NewRand returns the stream for (seed, stream): streams of one seed differ. Both are
// mixed: a stream that began at a multiple of the step would be its neighbour's,
// shifted by one draw.
func NewRand(seed, stream uint64) *Rand {
	a, b := Rand{state: seed}, Rand{state: stream}
	return &Rand{state: a.Uint64() + b.Uint64()*0xbf58476d1ce4e5b9}
}

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Intn returns a number in [0, n). The bias of the modulo does not matter here.
func (r *Rand) Intn(n int) int { return int(r.Uint64() % uint64(n)) }

// Range returns a number in [lo, hi].
func (r *Rand) Range(lo, hi int) int { return lo + r.Intn(hi-lo+1) }

// Chance reports whether an event of this probability, in percent, occurs.
func (r *Rand) Chance(percent int) bool { return r.Intn(100) < percent }

// Rare reports whether an event that occurs once in n draws occurs.
func (r *Rand) Rare(n int) bool { return r.Intn(n) == 0 }

// Pick returns one of the values.
func Pick[T any](r *Rand, values ...T) T { return values[r.Intn(len(values))] }

// Some returns up to n distinct values in their order.
func Some[T any](r *Rand, n int, values ...T) []T {
	var out []T
	for i, v := range values {
		left := len(values) - i
		if n > 0 && r.Intn(left) < n {
			out = append(out, v)
			n--
		}
	}
	return out
}
