// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// File is a file of workloads that was read. Its operations were judged but have no values yet: Case.Plan gives them
// those of one workload.
type File struct {
	Path  string
	Cases []*Case
}

// Case is a list of operations and the workloads that run it at various sizes.
type Case struct {
	Name   string
	Line   int
	Labels []string
	// Gates: feature gate -> on, for all workloads.
	Gates map[string]bool
	// Selector is what thresholds are about; nil for the average throughput.
	Selector  *MetricSelector
	Metrics   []Metric
	Workloads []*Workload

	source          *source
	schedulerConfig *field // path of the scheduler's configuration; nil for none
	defaultPod      *field // path of the template of pods without one; nil for none
	ops             []*yaml.Node
}

// Workload gives the parameters of a case their values.
type Workload struct {
	Name   string
	Line   int
	Labels []string
	// Gates: feature gate -> on; goes before that of the case.
	Gates map[string]bool
	// Params: name -> value.
	Params          map[string]Param
	Threshold       float64
	TopicThresholds map[string]float64 // as in Plan
	Selector        *MetricSelector    // nil for that of the case
}

// With is the workload with another value for one of its parameters.
func (w *Workload) With(name string, value any) *Workload {
	other := *w
	other.Params = maps.Clone(w.Params)
	p := other.Params[name]
	p.Value = value
	other.Params[name] = p
	return &other
}

// source is where a file came from, and where the files that it names are.
type source struct {
	path string
	// signs: if createPods names no signatureBatchSize, each pod of a template has a signature of its own, as in
	// scheduler_perf.
	signs bool
	read  func(name string) (shown string, content []byte, err error) // name is relative to the file
}

// Load reads a file. The files that it names are looked for relative to its directory. If the file is wrong, the
// error is of type Mistakes. Pods of a template are signed, as scheduler_perf signs them.
func Load(name string) (*File, error) {
	content, err := readFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading workloads: %w", err)
	}
	return load(content, &source{path: name, signs: true, read: func(other string) (string, []byte, error) {
		if !filepath.IsAbs(other) {
			other = filepath.Join(filepath.Dir(name), other)
		}
		content, err := readFile(other)
		return other, content, err
	}})
}

// LoadFS is Load for a file of a file system, such as the built-in one. Its pods are signed only where an operation
// names a signatureBatchSize: pods of one template stay equal, as those of a controller are.
func LoadFS(files fs.FS, name string) (*File, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading workloads: %w", err)
	}
	return load(content, &source{path: name, read: func(other string) (string, []byte, error) {
		other = path.Join(path.Dir(name), other)
		content, err := fs.ReadFile(files, other)
		return other, content, err
	}})
}

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 16 << 20

// readFile reads a file that a user names.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
	}
	return content, err
}

func load(content []byte, from *source) (*File, error) {
	r := &reading{source: from}
	file := &File{Path: from.path}
	if root := r.document(content); root != nil {
		if len(root.Content) == 0 {
			r.mistake(root.Line, "there is no case")
		}
		names := map[string]int{} // case -> line
		for _, node := range root.Content {
			c := r.readCase(target(node))
			if line, taken := names[c.Name]; taken {
				r.mistake(c.Line, "case %s stands there twice (line %d)", c.Name, line)
			}
			names[c.Name] = c.Line
			file.Cases = append(file.Cases, c)
		}
	}
	if err := r.found.err(); err != nil {
		return nil, err
	}
	return file, nil
}

var yamlLine = regexp.MustCompile(`yaml: (?:unmarshal errors:\s*)?line (\d+): (.*)$`)

// document is the list that the text holds; nil when it is none.
func (r *reading) document(content []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var doc yaml.Node
	err := decoder.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.mistake(0, "the file is empty")
		return nil
	case err != nil:
		line, what := yamlMistake(err)
		r.mistake(line, "%s", what)
		return nil
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.mistake(second.Line, "a second document: one file is one list of cases")
	}
	root := target(doc.Content[0])
	if root.Kind != yaml.SequenceNode {
		r.mistake(root.Line, "the file must be a list of cases")
		return nil
	}
	return root
}

// yamlMistake takes the line out of an error of the YAML reader.
func yamlMistake(err error) (int, string) {
	parts := yamlLine.FindStringSubmatch(err.Error())
	if parts == nil {
		return 0, err.Error()
	}
	line, _ := strconv.Atoi(parts[1]) // digits, as the expression says
	return line, parts[2]
}

func (r *reading) readCase(node *yaml.Node) *Case {
	m := r.mapping(node, "case")
	m.need("name")
	c := &Case{
		Name:    m.word("name"),
		Line:    m.line,
		Labels:  m.texts("labels"),
		Gates:   m.flags("featureGates"),
		Metrics: m.metrics("metricsCollectorConfig"),
		source:  r.source,
	}
	m.text("schedulerConfigPath") // for the check; Plan reads what it names
	m.text("defaultPodTemplatePath")
	c.schedulerConfig, c.defaultPod = m.get("schedulerConfigPath"), m.get("defaultPodTemplatePath")
	c.Selector = m.selector("defaultThresholdMetricSelector", c.Metrics)
	c.ops = m.list("workloadTemplate")
	r.judgeOps(c)
	names := map[string]int{} // workload -> line
	for _, one := range m.list("workloads") {
		w := r.readWorkload(one, c)
		if line, taken := names[w.Name]; taken {
			r.mistake(w.Line, "workload %s of case %s stands there twice (line %d)", w.Name, c.Name, line)
		}
		names[w.Name] = w.Line
		c.Workloads = append(c.Workloads, w)
	}
	m.done()
	return c
}

// list is a field that must hold at least one entry.
func (m *mapping) list(name string) []*yaml.Node {
	f := m.get(name)
	switch {
	case f == nil:
		m.in.mistake(m.line, "%s needs %s", m.what, name)
		return nil
	case f.value.Kind != yaml.SequenceNode || len(f.value.Content) == 0:
		m.wrong(f, "a list that is not empty")
		return nil
	}
	nodes := make([]*yaml.Node, len(f.value.Content))
	for i, node := range f.value.Content {
		nodes[i] = target(node)
	}
	return nodes
}

func (r *reading) readWorkload(node *yaml.Node, c *Case) *Workload {
	m := r.mapping(node, "workload")
	m.need("name")
	w := &Workload{
		Name:   m.word("name"),
		Line:   m.line,
		Labels: m.texts("labels"),
		Gates:  m.flags("featureGates"),
		Params: m.params("params"),
	}
	w.Threshold, w.TopicThresholds = m.threshold("threshold")
	w.Selector = m.selector("thresholdMetricSelector", c.Metrics)
	m.done()
	return w
}

// threshold is one figure for all, or one for each topic.
func (m *mapping) threshold(name string) (float64, map[string]float64) {
	f := m.get(name)
	if f == nil {
		return 0, nil
	}
	if f.value.Kind != yaml.MappingNode {
		n, ok := number(f.value)
		if !ok {
			m.wrong(f, "a number, 0 or more, or a mapping of topics to numbers")
		}
		return n, nil
	}
	topics := map[string]float64{} // topic -> threshold
	m.each(name, func(topic string, line int, value *yaml.Node) {
		n, ok := number(value)
		if !ok {
			m.in.mistake(line, "%s: the threshold of topic %s must be a number, 0 or more", m.what, topic)
		}
		topics[topic] = n
	})
	return 0, topics
}
