// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func join(t *testing.T, m *Members, name string, w Weight) Ordinal {
	t.Helper()
	o, err := m.Join(name, map[string]string{"name": name}, w)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Fault ordinalsUsedUp gives each start a new ordinal: 64 restarts of a pod would fill the table.
func TestOrdinalsAreTheLowestFree(t *testing.T) {
	var m Members
	for i, name := range []string{"a", "b", "c"} {
		if o := join(t, &m, name, DefaultWeight); o != Ordinal(i) {
			t.Errorf("%s has ordinal %d, want %d", name, o, i)
		}
	}
	if !m.Leave("b") || m.Leave("b") {
		t.Error("b must leave once")
	}
	if o := join(t, &m, "d", DefaultWeight); o != 1 {
		t.Errorf("d has ordinal %d, want the one that b left, 1", o)
	}
	if o, known := m.Named("c"); !known || o != 2 {
		t.Errorf("c has ordinal %d, %v; it must keep 2", o, known)
	}
}

func TestWhoCannotJoin(t *testing.T) {
	var m Members
	join(t, &m, "a", DefaultWeight)
	for _, c := range []struct {
		name string
		w    Weight
		want error
	}{{"a", 1, ErrSameName}, {"", 1, ErrNoName}, {"b", 0, ErrWeight}, {"b", MaxWeight + 1, ErrWeight}} {
		if _, err := m.Join(c.name, nil, c.w); !errors.Is(err, c.want) {
			t.Errorf("join %q with weight %d: %v, want %v", c.name, c.w, err, c.want)
		}
	}
	for i := 1; i < MaxMembers; i++ {
		join(t, &m, fmt.Sprint("m", i), DefaultWeight)
	}
	if _, err := m.Join("65th", nil, DefaultWeight); !errors.Is(err, ErrFull) {
		t.Errorf("the 65th: %v, want %v", err, ErrFull)
	}
}

func TestParseWeight(t *testing.T) {
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1), 0.0001, 1001} {
		if got, err := ParseWeight(w); err == nil {
			t.Errorf("weight %v: %d without an error", w, got)
		}
	}
	for w, want := range map[float64]Weight{1: DefaultWeight, 0.001: 1, 2.5: 2500, 1000: MaxWeight} {
		if got, err := ParseWeight(w); err != nil || got != want {
			t.Errorf("weight %v: %d, %v, want %d", w, got, err, want)
		}
	}
}
