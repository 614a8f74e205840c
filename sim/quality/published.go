// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The policies of the published results, as their files name them.
const (
	PublishedBestFit = "05-BestFit"
	PublishedFGD     = "06-FGD"
)

// Published are the published results of the paper: allocation or fragmentation, in percent of all GPUs.
type Published struct {
	values map[publishedKey]float64 // experiment -> percent
}

type publishedKey struct {
	workload, policy string
	seed             int64
	arrived          int // percent
}

// ReadPublished reads a file of results.
func ReadPublished(in io.Reader) (*Published, error) {
	all, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading published results: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading published results: the file is empty")
	}
	head := all[0]
	workload, policy := slices.Index(head, "workload"), slices.Index(head, "sc_policy")
	seed := slices.Index(head, "seed")
	if workload < 0 || policy < 0 || seed < 0 {
		return nil, fmt.Errorf("reading published results: the columns are %s", strings.Join(head, ", "))
	}
	out := &Published{values: map[publishedKey]float64{}}
	for i, row := range all[1:] {
		number, err := strconv.ParseInt(row[seed], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading published results: row %d: %w", i+1, err)
		}
		name := strings.TrimPrefix(row[workload], "openb_pod_list_")
		for k, cell := range row {
			arrived, err := strconv.Atoi(head[k])
			if err != nil {
				continue // no percentage
			}
			if v, err := strconv.ParseFloat(cell, 64); err == nil {
				out.values[publishedKey{name, row[policy], number, arrived}] = v
			}
		}
	}
	return out, nil
}

// At returns a value; NaN if there is none.
func (p *Published) At(workload, policy string, seed int64, arrived int) float64 {
	v, is := p.values[publishedKey{workload, policy, seed, arrived}]
	if !is {
		return math.NaN()
	}
	return v
}
