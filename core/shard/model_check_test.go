// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"flag"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	modelDepth     = flag.Int("model.depth", 7, "how many steps of the model to explore in every order")
	modelHistories = flag.Int("model.histories", 2000, "how many random histories of the model to follow to their end")
)

// explorer visits each state within a depth.
type explorer struct {
	seed  maphash.Seed
	seen  map[uint64]uint8 // hash of a state -> the largest number of steps that were left when it was visited
	path  []string
	wrong string
	steps int
}

func (e *explorer) explore(s *system, left uint8) {
	if e.wrong = judge(s); e.wrong != "" {
		return
	}
	h := maphash.Bytes(e.seed, s.key())
	if before, seen := e.seen[h]; seen && before >= left {
		return
	}
	e.seen[h] = left
	if left == 0 {
		return
	}
	for _, step := range s.steps() {
		next := s.clone()
		step.do(next)
		e.steps++
		e.path = append(e.path, step.name)
		if e.explore(next, left-1); e.wrong != "" {
			return
		}
		e.path = e.path[:len(e.path)-1]
	}
}

// judge returns the rule that a state breaks, or that it would break at rest.
func judge(s *system) string {
	if wrong := s.wrong(); wrong != "" {
		return wrong
	}
	rest := s.clone()
	rest.settle()
	return rest.wrongAtRest()
}

// Every order of the first steps. Faults that it detects: sentBeforeAck (a bind is sent before a follower has its
// entry), longestByPosition, logsByLength, staleSession, staleEpoch, repeatAdmitted.
func TestModelInEveryOrder(t *testing.T) {
	e := explorer{seed: maphash.MakeSeed(), seen: map[uint64]uint8{}}
	e.explore(newSystem(), uint8(*modelDepth))
	if e.wrong != "" {
		t.Fatalf("%s after\n  %s", e.wrong, strings.Join(e.path, "\n  "))
	}
	t.Logf("depth %d: %d states, %d steps", *modelDepth, len(e.seen), e.steps)
}

// Random histories go further than every order can.
func TestModelAtRandom(t *testing.T) {
	ended := 0
	for seed := range uint64(*modelHistories) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := newSystem()
		var path []string
		for range 60 {
			steps := s.steps()
			if len(steps) == 0 {
				ended++
				break
			}
			next := steps[random.IntN(len(steps))]
			next.do(s)
			path = append(path, next.name)
			if wrong := judge(s); wrong != "" {
				t.Fatalf("seed %d: %s after\n  %s", seed, wrong, strings.Join(path, "\n  "))
			}
		}
	}
	t.Logf("%d histories, %d of them came to an end within 60 steps", *modelHistories, ended)
}
