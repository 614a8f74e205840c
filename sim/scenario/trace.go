// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// GPU is the resource of whole GPUs in Philly's jobs, GPUMilli that of thousandths of GPUs in openb.
const (
	GPU      v1.ResourceName = "nvidia.com/gpu"
	GPUMilli v1.ResourceName = "example.com/gpu-milli"
)

// modelLabel is the label of openb's nodes with the model of their GPUs.
const modelLabel = "gpu-model"

// table is a CSV file with a line of names.
type table struct {
	columns map[string]int // name -> index
	rows    [][]string
}

// readTable reads a CSV file that must have the columns.
func readTable(in io.Reader, columns ...string) (*table, error) {
	all, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading CSV: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("reading CSV: the file is empty")
	}
	t, err := newTable(all[0], columns...)
	if err != nil {
		return nil, err
	}
	t.rows = all[1:]
	return t, nil
}

// newTable returns a table without rows of a file with a line of names, which must have the columns.
func newTable(head []string, columns ...string) (*table, error) {
	t := &table{columns: map[string]int{}}
	for i, name := range head {
		t.columns[name] = i
	}
	for _, name := range columns {
		if _, is := t.columns[name]; !is {
			return nil, fmt.Errorf("reading CSV: there is no column %q; the columns are %s", name,
				strings.Join(head, ", "))
		}
	}
	return t, nil
}

func (t *table) text(row []string, column string) string { return row[t.columns[column]] }

// number returns a cell that must hold a number that is not negative.
func (t *table) number(row []string, column string) (float64, error) {
	v, err := strconv.ParseFloat(t.text(row, column), 64)
	switch {
	case t.text(row, column) == "":
		return 0, fmt.Errorf("no %s", column)
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s is no number", column)
	case v < 0:
		return 0, fmt.Errorf("%s is negative", column)
	case v > 1e12:
		return 0, fmt.Errorf("%s is too large", column)
	}
	return v, nil
}

// whole returns a cell that must hold a whole number of at least and at most so much; least if there is no such column.
func (t *table) whole(row []string, column string, least, most int) (int, error) {
	if column == "" {
		return least, nil
	}
	v, err := t.number(row, column)
	switch {
	case err != nil:
		return 0, err
	case v != math.Trunc(v) || v < float64(least) || v > float64(most):
		return 0, fmt.Errorf("%s is no whole number from %d to %d", column, least, most)
	}
	return int(v), nil
}

// item is a row of a trace.
type item struct {
	at, work time.Duration
	size     int
	load     *sim.Workload
}

// Rows is a trace that was read from a file of rows.
type Rows struct {
	// Skipped counts the rows that were left out, by reason: why -> rows.
	Skipped map[string]int

	nodes []*v1.Node
	items []item
	loads []*sim.Workload
	byKey map[string]*sim.Workload // what tells pods apart -> workload
}

// Len returns the number of rows that were read.
func (r *Rows) Len() int { return len(r.items) }

// SortedSkips returns the reasons with their numbers of rows, as text.
func (r *Rows) SortedSkips() (list []string) {
	for why, n := range r.Skipped { // order: sorted below
		list = append(list, fmt.Sprintf("%d rows: %s", n, why))
	}
	slices.Sort(list)
	return list
}

func (r *Rows) workload(key string, make func() *sim.Workload) *sim.Workload {
	if l := r.byKey[key]; l != nil {
		return l
	}
	l := make()
	r.byKey[key] = l
	r.loads = append(r.loads, l)
	return l
}

func newRows() *Rows { return &Rows{Skipped: map[string]int{}, byKey: map[string]*sim.Workload{}} }

// gpusPerPod is how many GPUs a pod of a job has at most: those of a node.
const gpusPerPod = 8

// ReadPhilly reads jobs in the form of shared traces of Philly: columns vc, arrival_s, gpus and duration_v100_s. A job
// of up to 8 GPUs is one pod; a larger one is a gang of pods of 8, which must be a divisor. vc chooses a virtual
// cluster, empty for all.
func ReadPhilly(in io.Reader, vc string) (*Rows, error) {
	t, err := readTable(in, "vc", "arrival_s", "gpus", "duration_v100_s")
	if err != nil {
		return nil, err
	}
	out := newRows()
	for _, row := range t.rows {
		if vc != "" && t.text(row, "vc") != vc {
			continue
		}
		arrival, err1 := t.number(row, "arrival_s")
		gpus, err2 := t.number(row, "gpus")
		work, err3 := t.number(row, "duration_v100_s")
		n := int(gpus)
		err := errors.Join(err1, err2, err3)
		switch {
		case err != nil:
			out.Skipped[strings.ReplaceAll(err.Error(), "\n", ", ")]++
			continue
		case n < 1 || float64(n) != gpus || n > gpusPerPod && n%gpusPerPod != 0:
			out.Skipped[fmt.Sprintf("gpus is neither from 1 to %d nor a multiple of it", gpusPerPod)]++
			continue
		}
		each := min(n, gpusPerPod)
		l := out.workload(strconv.Itoa(n), func() *sim.Workload {
			return &sim.Workload{Name: fmt.Sprintf("gpus-%d", n), Kind: sim.Gang, Size: n / each, Retries: 6,
				Pod: podOf(v1.ResourceList{GPU: *apiresource.NewQuantity(int64(each), apiresource.DecimalSI)})}
		})
		out.items = append(out.items, item{seconds(arrival), max(seconds(work), time.Second), n / each, l})
	}
	out.sort()
	return out, nil
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

func podOf(requests v1.ResourceList) *v1.Pod {
	p := &v1.Pod{}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}
	return p
}

// ReadOpenb reads nodes and pods in the form of openb (Alibaba's trace of GPU clusters of 2023). GPUs are counted in
// thousandths of a node's sum: which device a share is on is not modelled.
func ReadOpenb(nodes, pods io.Reader) (*Rows, error) {
	n, err := readTable(nodes, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	p, err := readTable(pods, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time",
		"deletion_time", "scheduled_time")
	if err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	out := newRows()
	for _, row := range n.rows {
		cpu, err1 := n.number(row, "cpu_milli")
		memory, err2 := n.number(row, "memory_mib")
		gpu, err3 := n.number(row, "gpu")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.text(row, "sn"), err)
		}
		name := n.text(row, "sn")
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{v1.LabelHostname: name, modelLabel: n.text(row, "model")}}}
		node.Status.Allocatable = amounts(cpu, memory, gpu*1000)
		node.Status.Allocatable[v1.ResourcePods] = *apiresource.NewQuantity(1000, apiresource.DecimalSI)
		out.nodes = append(out.nodes, node)
	}
	for _, row := range p.rows {
		if err := out.openbPod(p, row); err != nil {
			out.Skipped[strings.ReplaceAll(err.Error(), "\n", ", ")]++
		}
	}
	out.sort()
	return out, nil
}

func amounts(cpuMilli, memoryMiB, gpuMilli float64) v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(cpuMilli), apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(int64(memoryMiB)<<20, apiresource.BinarySI),
	}
	if gpuMilli > 0 {
		list[GPUMilli] = *apiresource.NewQuantity(int64(gpuMilli), apiresource.DecimalSI)
	}
	return list
}

func (r *Rows) openbPod(t *table, row []string) error {
	var v [6]float64
	for i, column := range []string{"cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time",
		"deletion_time"} {
		var err error
		if v[i], err = t.number(row, column); err != nil {
			return err
		}
	}
	began := v[4]
	if at, err := t.number(row, "scheduled_time"); err == nil && at > began {
		began = at
	}
	if v[5] <= began {
		return errors.New("deletion_time is not after the start")
	}
	models := t.text(row, "gpu_spec")
	gpu := v[2] * v[3]
	l := r.workload(fmt.Sprint(v[0], v[1], gpu, models), func() *sim.Workload {
		pod := podOf(amounts(v[0], v[1], gpu))
		if models != "" {
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
					NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
						{Key: modelLabel, Operator: v1.NodeSelectorOpIn, Values: strings.Split(models, "|")}}}}}}}
		}
		return &sim.Workload{Name: fmt.Sprintf("shape-%d", len(r.loads)), Kind: sim.Pods, Size: 1, Pod: pod}
	})
	r.items = append(r.items, item{seconds(v[4]), seconds(v[5] - began), 1, l})
	return nil
}

func (r *Rows) sort() {
	slices.SortStableFunc(r.items, func(a, b item) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
}

// Length returns the time from the first arrival to the last end, if nothing waits.
func (r *Rows) Length() (last time.Duration) {
	for _, i := range r.items {
		last = max(last, i.at-r.items[0].at+i.work)
	}
	return last
}

// Load adds the nodes, and requests the arrivals from the first one on.
func (r *Rows) Load(w *sim.World, index int) ([]*sim.Workload, error) {
	for _, n := range r.nodes {
		w.AddNode(n)
	}
	loads := make([]*sim.Workload, len(r.loads))
	copied := map[*sim.Workload]*sim.Workload{} // of the trace -> of this run
	for i, l := range r.loads {
		one := *l
		if index > 0 { // the names of another trace, or of workloads, are not to be used twice
			one.Name = fmt.Sprintf("trace-%d-%s", index, l.Name)
		}
		loads[i], copied[l] = &one, &one
	}
	var next func(i int)
	next = func(i int) {
		for ; i < len(r.items); i++ {
			it := r.items[i]
			if at := it.at - r.items[0].at; at > w.Now() {
				w.At(at, func() { next(i) })
				return
			}
			w.CreateUnit(copied[it.load], it.size, it.work)
		}
	}
	w.At(0, func() { next(0) })
	return loads, nil
}
