// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"encoding/binary"

	"golang.org/x/exp/trace"
)

// maxFrames bounds the frames that are kept of a stack, and maxStacks the number of different stacks. Go records at
// most 128 frames. A trace with more stacks than that is not from a Go program.
const (
	maxFrames = 256
	maxStacks = 1 << 20
)

// stackID is the index of a stack. noStack is the empty one.
type stackID int32

const noStack stackID = 0

// stacks gives equal stacks one number, across the generations of a trace.
type stacks struct {
	functions []string                // function number -> name
	numbers   map[string]uint32       // name -> function number
	frames    [][]uint32              // stackID -> function numbers, innermost first
	ids       map[string]stackID      // encoded function numbers -> stackID
	seen      map[trace.Stack]stackID // stacks of the current generation -> stackID
}

func newStacks() *stacks {
	return &stacks{numbers: map[string]uint32{}, frames: [][]uint32{nil}, ids: map[string]stackID{"": noStack},
		seen: map[trace.Stack]stackID{}}
}

// nextGeneration forgets the handles of a generation, which keep its tables in memory.
func (s *stacks) nextGeneration() { clear(s.seen) }

// id returns the number of a stack.
func (s *stacks) id(stack trace.Stack) stackID {
	if stack == trace.NoStack {
		return noStack
	}
	if id, known := s.seen[stack]; known {
		return id
	}
	var key []byte
	var frames []uint32
	for f := range stack.Frames() {
		if len(frames) == maxFrames || f.Func == "runtime.goexit" { // it is below the start function of samples
			break
		}
		n := s.function(f.Func)
		frames, key = append(frames, n), binary.AppendUvarint(key, uint64(n))
	}
	id, known := s.ids[string(key)]
	if !known && len(s.frames) < maxStacks {
		id = stackID(len(s.frames))
		s.frames = append(s.frames, frames)
		s.ids[string(key)] = id
	}
	s.seen[stack] = id
	return id
}

func (s *stacks) function(name string) uint32 {
	n, known := s.numbers[name]
	if !known {
		n = uint32(len(s.functions))
		s.functions = append(s.functions, name)
		s.numbers[name] = n
	}
	return n
}

// names returns the functions of a stack, innermost first.
func (s *stacks) names(id stackID) []string {
	frames := s.frames[id]
	list := make([]string, len(frames))
	for i, n := range frames {
		list[i] = s.functions[n]
	}
	return list
}

// root returns the outermost function of a stack: the one with which a goroutine started. It is empty for noStack.
func (s *stacks) root(id stackID) string {
	frames := s.frames[id]
	if len(frames) == 0 {
		return ""
	}
	return s.functions[frames[len(frames)-1]]
}
