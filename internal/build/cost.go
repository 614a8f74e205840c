// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// Package is a Go package and what determines how long its compilation takes.
type Package struct {
	Path    string
	Bytes   int64 // of Go source
	Imports []string
}

// ParsePackages reads lines "path<tab>bytes<tab>import import ...".
func ParsePackages(r io.Reader) (list []Package, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("read the list of packages: %q has no three fields", lines.Text())
		}
		bytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the list of packages: size of %s: %w", fields[0], err)
		}
		list = append(list, Package{fields[0], bytes, strings.Fields(fields[2])})
	}
	return list, lines.Err()
}

// CPU time of a compilation, in seconds, on the machine of docs/bench/first-start.md: fitted to the times of 2,779
// packages. The compiler reads what a package imports, directly or not.
const (
	secondsPerByte         = 2.6e-6
	secondsPerImportedByte = 1.5e-8
	secondsPerPackage      = 0.02 // no package is free
)

// Work is the packages of a build, and which of them are done.
type Work struct {
	index map[string]int // path -> position in the slices
	cost  []float64      // seconds of CPU time
	below []*big.Int     // the set of positions that a package imports, directly or not
	done  *big.Int       // the set of positions that are compiled
	total float64
	ready float64 // sum of cost over done
}

// NewWork returns the work of compiling packages, each of which must follow what it imports, as go list -deps orders
// them. Imports that are not in the list are ignored.
func NewWork(list []Package) *Work {
	w := &Work{index: map[string]int{}, done: new(big.Int)}
	sizes := make([]int64, 0, len(list))
	for i, p := range list {
		below := new(big.Int)
		for _, path := range p.Imports {
			if j, ok := w.index[path]; ok {
				below.Or(below, w.below[j]).SetBit(below, j, 1)
			}
		}
		imported := int64(0)
		for j := range i {
			imported += int64(below.Bit(j)) * sizes[j]
		}
		cost := secondsPerPackage + secondsPerByte*float64(p.Bytes) + secondsPerImportedByte*float64(imported)
		w.index[p.Path], w.total = i, w.total+cost
		w.cost, w.below, sizes = append(w.cost, cost), append(w.below, below), append(sizes, p.Bytes)
	}
	return w
}

// Total returns the CPU time of all packages.
func (w *Work) Total() float64 { return w.total }

// Ready returns the CPU time of the packages that are compiled.
func (w *Work) Ready() float64 { return w.ready }

// Begun records that the compilation of a package begins: what it imports is compiled, or was in the cache.
func (w *Work) Begun(path string) {
	i, ok := w.index[path]
	if !ok {
		return
	}
	for j := range i {
		if w.below[i].Bit(j) == 1 && w.done.Bit(j) == 0 {
			w.done.SetBit(w.done, j, 1)
			w.ready += w.cost[j]
		}
	}
}
