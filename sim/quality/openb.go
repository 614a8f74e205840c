// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"slices"
	"strconv"
)

// The protocol of "Beware of Fragmentation" (ATC'23): the GPU nodes of openb, pods in random order, then pods drawn
// from the trace until 130 % of the GPUs have been requested. Pods arrive one by one and never end; a pod that fits no
// node is not tried again.
const (
	// WholeGPU is a GPU in thousandths, the unit in which shares are requested.
	WholeGPU = 1000
	// Arrivals is how much is requested at the end, as a share of all GPUs.
	Arrivals = 1.3
)

// OpenbWorkloads are the nine pod lists of the paper's table.
func OpenbWorkloads() []string {
	return []string{"default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80",
		"gpushare100"}
}

// OpenbNode is a node of the trace.
type OpenbNode struct {
	Name   string
	CPU    int64 // thousandths
	Memory int64 // MiB
	GPUs   int
	Model  string // of its GPUs
}

// OpenbPod is a pod of the trace.
type OpenbPod struct {
	Name string
	OpenbShape
	// Created and Deleted are seconds since the beginning of the trace.
	Created, Deleted float64
}

// OpenbShape is what a pod requests.
type OpenbShape struct {
	CPU    int64 // thousandths
	Memory int64 // MiB
	GPUs   int
	Milli  int64  // of each GPU, in thousandths; 1000 if GPUs is more than 1
	Models string // allowed models of GPUs, joined by |; empty for any
}

// GPUMilli returns the thousandths of GPUs that a pod requests.
func (s *OpenbShape) GPUMilli() int64 { return int64(s.GPUs) * s.Milli }

// Openb is a cluster and the pods that arrive at it.
type Openb struct {
	Nodes []OpenbNode
	Pods  []OpenbPod // sorted by name
}

// TotalGPU returns the GPUs of all nodes in thousandths.
func (o *Openb) TotalGPU() (milli int64) {
	for i := range o.Nodes {
		milli += int64(o.Nodes[i].GPUs) * WholeGPU
	}
	return milli
}

// ReadOpenb reads a node list and a pod list of the trace.
func ReadOpenb(nodes, pods io.Reader) (*Openb, error) {
	n, err := readRows(nodes, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, fmt.Errorf("reading openb's nodes: %w", err)
	}
	p, err := readRows(pods, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time",
		"deletion_time")
	if err != nil {
		return nil, fmt.Errorf("reading openb's pods: %w", err)
	}
	out := &Openb{}
	for i, row := range n {
		v, err := wholes(row[1:4])
		if err != nil {
			return nil, fmt.Errorf("reading openb's nodes: row %d: %w", i+1, err)
		}
		out.Nodes = append(out.Nodes, OpenbNode{row[0], v[0], v[1], int(v[2]), row[4]})
	}
	for i, row := range p {
		v, err := wholes(append(row[1:5:5], row[6:]...))
		if err != nil {
			return nil, fmt.Errorf("reading openb's pods: row %d: %w", i+1, err)
		}
		out.Pods = append(out.Pods, OpenbPod{row[0], OpenbShape{v[0], v[1], int(v[2]), v[3], row[5]}, float64(v[4]),
			float64(v[5])})
	}
	slices.SortStableFunc(out.Pods, func(a, b OpenbPod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// readRows returns the named columns of a CSV file with a line of names.
func readRows(in io.Reader, columns ...string) ([][]string, error) {
	all, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the file is empty")
	}
	at := make([]int, len(columns))
	for i, name := range columns {
		if at[i] = slices.Index(all[0], name); at[i] < 0 {
			return nil, fmt.Errorf("there is no column %q", name)
		}
	}
	rows := make([][]string, len(all)-1)
	for i, row := range all[1:] {
		for _, k := range at {
			rows[i] = append(rows[i], row[k])
		}
	}
	return rows, nil
}

// wholes reads numbers that are not negative. An empty cell is 0.
func wholes(cells []string) ([]int64, error) {
	out := make([]int64, len(cells))
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || v < 0 || v > 1e12 || math.IsNaN(v) {
			return nil, fmt.Errorf("%q is not a number from 0 to 1e12", cell)
		}
		out[i] = int64(v)
	}
	return out, nil
}

// Arrive returns the indexes in Pods of the arrivals of a seed, in their order. It draws as the paper's simulator does,
// so the order is the same.
func (o *Openb) Arrive(seed int64) []int {
	r := rand.New(rand.NewSource(seed))
	r.Int() // the paper's simulator logs a number first
	order := make([]int, len(o.Pods))
	for i := range order {
		order[i] = i
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	total, limit := int64(0), float64(o.TotalGPU())*Arrivals
	for _, i := range order {
		total += o.Pods[i].GPUMilli()
	}
	shuffled := len(order)
	for {
		next := order[r.Intn(shuffled)]
		total += o.Pods[next].GPUMilli()
		if float64(total) > limit {
			return order
		}
		order = append(order, next)
	}
}

// Curve is the share of all GPUs that is allocated, by how much of them was requested so far.
type Curve struct {
	total, arrived, used int64
	sums                 []float64 // by percent requested, rounded
	counts               []int
}

// NewCurve returns an empty curve of a cluster.
func (o *Openb) NewCurve() *Curve { return &Curve{total: o.TotalGPU()} }

// Arrived counts an arrival, and whether the pod was placed.
func (c *Curve) Arrived(gpuMilli int64, placed bool) {
	c.arrived += gpuMilli
	if placed {
		c.used += gpuMilli
	}
	at := int(math.Round(100 * float64(c.arrived) / float64(c.total)))
	for len(c.sums) <= at {
		c.sums, c.counts = append(c.sums, 0), append(c.counts, 0)
	}
	c.sums[at] += 100 * float64(c.used) / float64(c.total)
	c.counts[at]++
}

// At returns the percentage of the GPUs that is allocated when so many percent were requested: the mean over the
// arrivals that round to that; NaN if there are none.
func (c *Curve) At(percent int) float64 {
	if percent >= len(c.sums) || c.counts[percent] == 0 {
		return math.NaN()
	}
	return c.sums[percent] / float64(c.counts[percent])
}

// End returns the percentage of the GPUs that is allocated after the last arrival.
func (c *Curve) End() float64 { return 100 * float64(c.used) / float64(c.total) }

// Changed returns the same trace with other shapes: CPU, memory and shares of GPUs of each shape are multiplied by
// factors from 0.8 to 1.2 that the seed draws.
func (o *Openb) Changed(seed int64) *Openb {
	r := rand.New(rand.NewSource(seed))
	scaled := func(v int64) int64 { return int64(float64(v) * (0.8 + 0.4*r.Float64())) }
	shapes := map[OpenbShape]OpenbShape{} // shape -> changed
	out := &Openb{Nodes: o.Nodes, Pods: slices.Clone(o.Pods)}
	for i := range out.Pods {
		was := o.Pods[i].OpenbShape
		is, known := shapes[was]
		if !known {
			is = was
			is.CPU, is.Memory = scaled(was.CPU), scaled(was.Memory)
			if milli := scaled(was.Milli); was.GPUs == 1 && was.Milli < WholeGPU {
				is.Milli = min(max(milli, 1), WholeGPU-1)
			}
			shapes[was] = is
		}
		out.Pods[i].OpenbShape = is
	}
	return out
}
