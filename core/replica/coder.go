// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Bounds of what a reader accepts. Its memory is bounded by them and by the bytes that it was given.
const (
	maxName  = 512     // bytes of a text that the dictionary of names has
	maxText  = 2 << 20 // bytes of any text; the API server stores no object of more than 1.5 MiB
	maxList  = 1 << 16 // elements of a list of a record
	maxNames = 1 << 16
	maxSpecs = 1 << 12
	maxBlob  = 1 << 16 // bytes of a text that the dictionary of rare parts has
	maxBlobs = 1 << 8
)

var errShort = errors.New("the data ends in the middle of a value")

// coder writes values into buf, or reads them from it: one description of a record serves both, so that they cannot
// disagree. Its methods take pointers; a coder that writes changes nothing behind them, since records are shared.
//
// Rejected: JSON as in recordings, with 1 to 3 KB for a pod; protocol buffers, whose generated types would be a second
// form of each record and must be converted.
type coder struct {
	buf   []byte
	reads bool
	err   error // of a coder that reads: the first one

	// What occurs again and again is sent once. Both sides define the same values in the same order.
	names ring[string]
	blobs ring[string]
	specs ring[*cluster.PodSpec]
	share *convert.Intake // of a coder that reads; pods with equal specs share them, as where they come from
}

func newCoder(reads bool) *coder {
	return &coder{reads: reads, share: convert.NewIntake(), names: ring[string]{size: maxNames},
		blobs: ring[string]{size: maxBlobs}, specs: ring[*cluster.PodSpec]{size: maxSpecs}}
}

// ring numbers values. When it is full, a new value takes the number of the oldest.
type ring[T comparable] struct {
	size  int
	of    []T // number -> value
	next  int // the number that the next value gets
	index map[T]int
}

// number returns the number of a value that is in the ring.
func (r *ring[T]) number(v T) (int, bool) {
	if r.index == nil {
		r.index = make(map[T]int, len(r.of))
		for i, v := range r.of {
			r.index[v] = i
		}
	}
	i, in := r.index[v]
	return i, in
}

func (r *ring[T]) define(v T) {
	if r.next == len(r.of) {
		r.of = append(r.of, v)
	} else {
		if r.index != nil && r.index[r.of[r.next]] == r.next {
			delete(r.index, r.of[r.next])
		}
		r.of[r.next] = v
	}
	if r.index != nil {
		r.index[v] = r.next
	}
	r.next = (r.next + 1) % r.size
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.buf = nil
}

func (c *coder) uint(v *uint64) {
	if !c.reads {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	got, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.fail("%w", errShort)
		got, n = 0, 0
	}
	*v, c.buf = got, c.buf[n:]
}

func (c *coder) int64(v *int64) {
	u := uint64(*v)<<1 ^ uint64(*v>>63)
	if c.uint(&u); c.reads {
		*v = int64(u>>1) ^ -int64(u&1)
	}
}

func (c *coder) int(v *int) {
	wide := int64(*v)
	if c.int64(&wide); c.reads {
		*v = int(wide)
	}
}

func (c *coder) int32(v *int32) {
	wide := int64(*v)
	if c.int64(&wide); c.reads {
		if *v = int32(wide); int64(*v) != wide {
			c.fail("%d is no number of 32 bits", wide)
		}
	}
}

// time writes whole seconds in few bytes.
func (c *coder) time(v *record.Time) {
	seconds, rest := int64(*v/record.Second), int64(*v%record.Second)
	c.int64(&seconds)
	if c.int64(&rest); c.reads {
		*v = record.Time(seconds)*record.Second + record.Time(rest)
	}
}

// bits writes which of up to 64 conditions hold, and returns it; a coder that reads ignores the arguments.
func (c *coder) bits(when ...bool) (b bitSet) {
	for i, is := range when {
		if is && !c.reads {
			b |= 1 << i
		}
	}
	u := uint64(b)
	if c.uint(&u); u>>len(when) != 0 {
		c.fail("bits %b of %d", u, len(when))
		u = 0
	}
	return bitSet(u)
}

type bitSet uint64

func (b bitSet) has(i int) bool { return b&(1<<i) != 0 }

// bytes writes n bytes of s as they are.
func (c *coder) bytes(s *string, n uint64) {
	switch {
	case !c.reads:
		c.buf = append(c.buf, *s...)
	case n > uint64(len(c.buf)) || n > maxText:
		c.fail("%w", errShort)
		*s = ""
	default:
		*s, c.buf = string(c.buf[:n]), c.buf[n:]
	}
}

func (c *coder) text(s *string) {
	n := uint64(len(*s))
	c.uint(&n)
	c.bytes(s, n)
}

// How a value of a ring begins; other numbers are those of known values, from inRing on.
const (
	defined = 0 // the value follows, and gets the next number
	inline  = 1 // the value follows, and gets none
	inRing  = 2
)

// name writes a text that is likely to occur again.
func name[T ~string](c *coder, v *T) {
	s := string(*v)
	refer(c, &c.names, &s, maxName, c.text)
	if c.reads {
		*v = T(s)
	}
}

// refer writes the number of a text in a ring, or the text if it is new.
func refer(c *coder, r *ring[string], s *string, most int, write func(*string)) {
	ref := uint64(defined)
	if !c.reads {
		switch i, in := r.number(*s); {
		case in:
			ref = uint64(i) + inRing
		case len(*s) > most:
			ref = inline
		}
	}
	switch c.uint(&ref); {
	case ref == defined:
		if write(s); len(*s) > most {
			c.fail("a text of %d bytes in a dictionary", len(*s))
			return
		}
		r.define(*s)
	case ref == inline:
		write(s)
	case c.reads && ref-inRing < uint64(len(r.of)):
		*s = r.of[ref-inRing]
	case c.reads:
		c.fail("text %d of a dictionary of %d", ref-inRing, len(r.of))
	}
}

// list writes a list; nil and empty are different.
func list[T any](c *coder, l *[]T, each func(*T)) {
	n := uint64(0)
	if *l != nil {
		n = uint64(len(*l)) + 1
	}
	c.uint(&n)
	if !c.reads {
		for i := range *l {
			each(&(*l)[i])
		}
		return
	}
	*l = nil
	if n == 0 {
		return
	}
	if n-1 > maxList || n-1 > uint64(len(c.buf)) { // an element takes a byte at least
		c.fail("a list of %d elements", n-1)
		return
	}
	*l = []T{}
	for range n - 1 {
		var v T
		if each(&v); c.err != nil {
			return
		}
		*l = append(*l, v)
	}
}

func names(c *coder, l *[]string) { list(c, l, func(s *string) { name(c, s) }) }

// pairs writes a map; nil and empty are different.
func pairs(c *coder, m *map[string]string) {
	var keys []string
	if !c.reads && *m != nil {
		keys = make([]string, 0, len(*m))
		for k := range *m { // order: sorted below
			keys = append(keys, k)
		}
		slices.Sort(keys)
	}
	if c.reads {
		*m = nil
	}
	list(c, &keys, func(k *string) {
		var v string
		if !c.reads {
			v = (*m)[*k]
		}
		name(c, k)
		if name(c, &v); c.reads {
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)[*k] = v
		}
	})
	if c.reads && keys != nil && *m == nil {
		*m = map[string]string{}
	}
}

// uid writes the identifiers of the API server as 16 bytes, and others as text.
func (c *coder) uid(v *cluster.UID) {
	var raw [16]byte
	var n uint64
	packed := !c.reads && pack(string(*v), &raw)
	if !packed {
		n = uint64(len(*v)) + 1
	}
	c.uint(&n)
	s := string(*v)
	if n == 0 {
		s = string(raw[:])
		c.bytes(&s, 16)
		if copy(raw[:], s); c.reads && c.err == nil {
			s = unpack(raw)
		}
	} else {
		c.bytes(&s, n-1)
	}
	if c.reads {
		*v = cluster.UID(s)
	}
}

const hexDigits = "0123456789abcdef"

// dashes are the positions of the dashes of a UUID.
var dashes = [...]int{8, 13, 18, 23}

// pack reads a UUID in lower case. It reports whether s is one.
func pack(s string, into *[16]byte) bool {
	if len(s) != 36 {
		return false
	}
	digit := 0
	for i := range len(s) {
		if slices.Contains(dashes[:], i) {
			if s[i] != '-' {
				return false
			}
			continue
		}
		var v byte
		switch ch := s[i]; {
		case '0' <= ch && ch <= '9':
			v = ch - '0'
		case 'a' <= ch && ch <= 'f':
			v = ch - 'a' + 10
		default:
			return false
		}
		into[digit/2] |= v << (4 * (1 - digit%2))
		digit++
	}
	return true
}

func unpack(raw [16]byte) string {
	b := make([]byte, 0, 36)
	for _, v := range raw {
		if slices.Contains(dashes[:], len(b)) {
			b = append(b, '-')
		}
		b = append(b, hexDigits[v>>4], hexDigits[v&15])
	}
	return string(b)
}

// version writes a resourceVersion, which is a number in decimals in practice, and opaque by contract.
func (c *coder) version(v *string) {
	n := uint64(len(*v)) << 1
	if !c.reads {
		if number, err := strconv.ParseUint(*v, 10, 62); err == nil && strconv.FormatUint(number, 10) == *v {
			n = number<<1 | 1
		}
	}
	switch c.uint(&n); {
	case n&1 == 0:
		c.bytes(v, n>>1)
	case c.reads:
		*v = strconv.FormatUint(n>>1, 10)
	}
}

// blob writes what few records have, as JSON. Equal ones are sent once.
func blob[T any](c *coder, v *T) {
	var s string
	if !c.reads {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("replica: writing %T: %v", v, err)) // plain data always marshals
		}
		s = string(raw)
	}
	refer(c, &c.blobs, &s, maxBlob, c.text)
	if c.reads && c.err == nil {
		if err := json.Unmarshal([]byte(s), v); err != nil {
			c.fail("%w", err)
		}
	}
}
