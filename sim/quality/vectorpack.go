// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Instance is a problem of vector bin packing, as Vectorpack's files have it.
type Instance struct {
	Name     string
	Capacity []int64
	Items    [][]int64 // in the order of the file
	// Optimum is the fewest bins; 0 if it is not known.
	Optimum int
}

// ReadInstance reads one .vbp file: the number of resources, the capacity of a bin, the number of lines, and in each
// line an item and how often it occurs.
func ReadInstance(name string, in io.Reader) (*Instance, error) {
	words := bufio.NewScanner(in)
	words.Split(bufio.ScanWords)
	next := func() (v int64, err error) {
		if !words.Scan() {
			return 0, errors.Join(words.Err(), io.ErrUnexpectedEOF)
		}
		if v, err = strconv.ParseInt(words.Text(), 10, 64); err == nil && v < 0 || v > 1e9 {
			err = fmt.Errorf("%d is not a number from 0 to 1e9", v)
		}
		return v, err
	}
	vector := func(n int64) (out []int64, err error) {
		for range n {
			v, err := next()
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	fail := func(err error) (*Instance, error) { return nil, fmt.Errorf("reading instance %s: %w", name, err) }
	out := &Instance{Name: name}
	resources, err := next()
	if err != nil || resources < 1 || resources > 64 {
		return fail(errors.Join(err, fmt.Errorf("%d resources", resources)))
	}
	if out.Capacity, err = vector(resources); err != nil {
		return fail(err)
	}
	lines, err := next()
	if err != nil {
		return fail(err)
	}
	for range lines {
		line, err := vector(resources + 1)
		if err != nil {
			return fail(err)
		}
		for range line[resources] {
			out.Items = append(out.Items, line[:resources])
		}
	}
	return out, nil
}

// ReadInstances reads an archive of instances and the table of their optima, and passes them on in the order of the
// archive.
func ReadInstances(archive, table io.Reader, use func(*Instance) error) error {
	known, err := readOptima(table)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("reading instances: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		f, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading instances: %w", err)
		}
		if path.Ext(f.Name) != ".vbp" {
			continue
		}
		one, err := ReadInstance(strings.TrimSuffix(path.Base(f.Name), ".vbp"), files)
		if err != nil {
			return err
		}
		one.Optimum = known[one.Name]
		if err := use(one); err != nil {
			return err
		}
	}
}

// readOptima reads the optima that are known: instance -> bins.
func readOptima(table io.Reader) (map[string]int, error) {
	r := csv.NewReader(table)
	r.Comma = '\t'
	all, err := r.ReadAll()
	if err != nil || len(all) == 0 {
		return nil, errors.Join(errors.New("reading optima"), err)
	}
	name, optimum := slices.Index(all[0], "instance_name"), slices.Index(all[0], "OPT")
	if name < 0 || optimum < 0 {
		return nil, fmt.Errorf("reading optima: the columns are %s", strings.Join(all[0], ", "))
	}
	out := map[string]int{}
	for i, row := range all[1:] {
		v, err := strconv.Atoi(row[optimum])
		if err != nil {
			return nil, fmt.Errorf("reading optima: row %d: %w", i+1, err)
		}
		if v > 0 {
			out[strings.TrimSuffix(path.Base(row[name]), ".vbp")] = v
		}
	}
	return out, nil
}

// VectorResource returns the name of the i-th resource of an instance.
func VectorResource(i int) v1.ResourceName { return v1.ResourceName(fmt.Sprintf("example.com/r%d", i)) }

// Place has a scheduler place the items one by one, in an order, on as many nodes as there are items, and returns the
// number of nodes that it uses.
func (in *Instance) Place(make NewPlacer, order []int) (nodes int, err error) {
	list := func(amounts []int64) v1.ResourceList {
		out := v1.ResourceList{}
		for i, v := range amounts {
			out[VectorResource(i)] = *apiresource.NewQuantity(v, apiresource.DecimalSI)
		}
		return out
	}
	var objects []*v1.Node
	for i := range in.Items {
		name := fmt.Sprintf("bin-%03d", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		n.Status.Allocatable = list(in.Capacity)
		n.Status.Allocatable[v1.ResourcePods] = *apiresource.NewQuantity(1000, apiresource.DecimalSI)
		objects = append(objects, n)
	}
	p, err := make(objects, nil)
	if err != nil {
		return 0, err
	}
	used := map[string]bool{} // node -> used
	for _, i := range order {
		node := p.Place(p.Template(podOf(list(in.Items[i])))).NodeName
		if node == "" {
			return 0, fmt.Errorf("instance %s: item %d was not placed", in.Name, i)
		}
		used[node] = true
	}
	return len(used), p.Err()
}

// Order returns the items in the order of the file.
func (in *Instance) Order() []int {
	order := make([]int, len(in.Items))
	for i := range order {
		order[i] = i
	}
	return order
}

// LargestFirst returns the items by decreasing sum of squares of their shares of a bin.
func (in *Instance) LargestFirst() []int {
	size := func(i int) (sum float64) {
		for r, v := range in.Items[i] {
			share := float64(v) / float64(in.Capacity[r])
			sum += float64(share * share)
		}
		return sum
	}
	order := in.Order()
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := size(a), size(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return order
}
