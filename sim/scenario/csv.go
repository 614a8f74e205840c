// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// CSV is a trace in a CSV file whose columns are named by a map, such as a cut of Borg's traces.
type CSV struct {
	File    string  `yaml:"file"` // relative to the scenario file
	Columns Columns `yaml:"columns"`
	// Time is the unit of the columns with times.
	Time *time.Duration `yaml:"time"`
	// Scale says what 1 in the column of a resource means; 1 of the resource if it is absent.
	Scale v1.ResourceList `yaml:"scale"`
	// Where chooses the rows that have the values: column -> value.
	Where map[string]string `yaml:"where"`
	Kind  string            `yaml:"kind"` // of rows with several pods
	Rows  int               `yaml:"rows"` // at most; 0 for all
}

// Columns are the names of columns.
type Columns struct {
	Arrival  string `yaml:"arrival"`
	Work     string `yaml:"work"`     // how long it runs
	End      string `yaml:"end"`      // or when it ends, counted from Start or from the arrival
	Start    string `yaml:"start"`    // when it began to run
	Pods     string `yaml:"pods"`     // number of pods; 1 if it is absent
	Priority string `yaml:"priority"` // a whole number
	// Requests are resource -> column.
	Requests map[string]string `yaml:"requests"`
}

// check returns what is wrong with a map of columns.
func (c *CSV) check() error {
	col := c.Columns
	switch {
	case c.File == "" || col.Arrival == "":
		return errors.New("a CSV trace needs a file and a column for arrival")
	case (col.Work == "") == (col.End == ""):
		return errors.New("a CSV trace needs a column for either work or end")
	case col.Start != "" && col.End == "":
		return errors.New("a column for start is for traces with a column for end")
	case len(col.Requests) == 0:
		return errors.New("a CSV trace needs a column for at least one resource (requests)")
	case c.Time != nil && *c.Time <= 0:
		return errors.New("time, the unit of times, must be longer than 0s")
	case !slices.Contains([]string{"", string(sim.Pods), string(sim.Gang)}, c.Kind):
		return fmt.Errorf("kind must be %s or %s, is %q", sim.Pods, sim.Gang, c.Kind)
	case c.Rows < 0 || c.Rows > maxCount:
		return fmt.Errorf("rows must be from 0 to %d, is %d", maxCount, c.Rows)
	}
	for _, resource := range slices.Sorted(maps.Keys(c.Scale)) {
		q := c.Scale[resource]
		if col.Requests[string(resource)] == "" || q.Sign() <= 0 {
			return fmt.Errorf("scale: %s needs a column in requests, and an amount above 0", resource)
		}
	}
	return nil
}

// columns returns the names of all columns that are read.
func (c *CSV) columns() (list []string) {
	col := c.Columns
	for _, name := range slices.Concat([]string{col.Arrival, col.Work, col.End, col.Start, col.Pods, col.Priority},
		slices.Sorted(maps.Values(col.Requests)), slices.Sorted(maps.Keys(c.Where))) {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// open reads the file. dir is that of the scenario file.
func (c *CSV) open(dir string) (*Rows, error) {
	path := c.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	rows, err := ReadCSV(in, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	return rows, nil
}

// ReadCSV reads a trace by its map of columns. Rows that cannot be used are skipped, with the reason.
func ReadCSV(in io.Reader, c *CSV) (*Rows, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("reading CSV: the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("reading CSV: %w", err)
	}
	t, err := newTable(slices.Clone(head), c.columns()...)
	if err != nil {
		return nil, err
	}
	out := newRows()
	for c.Rows == 0 || len(out.items) < c.Rows {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading CSV: %w", err)
		}
		if len(row) != len(head) {
			out.Skipped[fmt.Sprintf("%d cells instead of %d", len(row), len(head))]++
			continue
		}
		if err := out.csvRow(c, t, row); err != nil {
			out.Skipped[strings.ReplaceAll(err.Error(), "\n", ", ")]++
		}
	}
	if len(out.items) == 0 {
		return nil, fmt.Errorf("reading CSV: no row can be used: %s", strings.Join(out.SortedSkips(), "; "))
	}
	out.sort()
	return out, nil
}

// csvRow adds the pods of a row. A row that is not chosen is neither added nor skipped.
func (r *Rows) csvRow(c *CSV, t *table, row []string) error {
	for column, value := range c.Where { // order: a conjunction
		if t.text(row, column) != value {
			return nil
		}
	}
	arrival, err1 := t.number(row, c.Columns.Arrival)
	work, err2 := c.work(t, row, arrival)
	size, err3 := t.whole(row, c.Columns.Pods, 1, maxUnit)
	priority, err4 := t.whole(row, c.Columns.Priority, 0, math.MaxInt32)
	requests, err5 := c.requests(t, row)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	each := time.Second
	if c.Time != nil {
		each = *c.Time
	}
	at, long := timesUnit(arrival, each), timesUnit(work, each)
	if at < 0 || long < 0 {
		return errors.New("a time is longer than 100 years")
	}
	kind := sim.Pods
	if c.Kind == string(sim.Gang) && size > 1 {
		kind = sim.Gang
	}
	l := r.shape(requests, int32(priority), kind, size)
	r.items = append(r.items, item{at, max(long, time.Millisecond), size, l})
	return nil
}

// maxUnit bounds the pods of a row.
const maxUnit = 100_000

// timesUnit returns a number of units as a duration, below 0 if it is too long.
func timesUnit(n float64, unit time.Duration) time.Duration {
	if out := n * float64(unit); out < float64(100*365*24*time.Hour) {
		return time.Duration(out)
	}
	return -1
}

// work returns how long a row's pods run, in the unit of the file.
func (c *CSV) work(t *table, row []string, arrival float64) (float64, error) {
	if c.Columns.Work != "" {
		return t.number(row, c.Columns.Work)
	}
	end, err := t.number(row, c.Columns.End)
	began := arrival
	if err == nil && c.Columns.Start != "" {
		began, err = t.number(row, c.Columns.Start)
	}
	switch {
	case err != nil:
		return 0, err
	case end <= began:
		return 0, fmt.Errorf("%s is not after the start", c.Columns.End)
	}
	return end - began, nil
}

// requests returns what each pod of a row requests, rounded up to thousandths of cores and whole units. Nothing at all
// is no request.
func (c *CSV) requests(t *table, row []string) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(c.Columns.Requests)) {
		v, err := t.number(row, c.Columns.Requests[name])
		if err != nil {
			return nil, err
		}
		resource := v1.ResourceName(name)
		one := apiresource.MustParse("1")
		if q, is := c.Scale[resource]; is {
			one = q
		}
		amount := math.Ceil(v * one.AsApproximateFloat64() * 1000)
		switch {
		case amount > 1e15:
			return nil, fmt.Errorf("%s is too large", c.Columns.Requests[name])
		case amount == 0:
		case resource == v1.ResourceCPU:
			out[resource] = *apiresource.NewMilliQuantity(int64(amount), apiresource.DecimalSI)
		default:
			out[resource] = *apiresource.NewQuantity(int64(math.Ceil(amount/1000)), apiresource.DecimalSI)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("all requests are 0")
	}
	return out, nil
}

// shape returns the workload of the pods with these requests.
func (r *Rows) shape(requests v1.ResourceList, priority int32, kind sim.Kind, size int) *sim.Workload {
	key := fmt.Sprint(priority, kind)
	if kind == sim.Gang {
		key += fmt.Sprint(" of ", size)
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		key += fmt.Sprint(" ", name, "=", q.String())
	}
	return r.workload(key, func() *sim.Workload {
		pod := podOf(requests)
		pod.Spec.Priority = &priority
		return &sim.Workload{Name: fmt.Sprintf("shape-%d", len(r.loads)), Kind: kind, Size: size, Retries: 6, Pod: pod}
	})
}
