// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// Manifest is an object of a file of manifests that has pods.
type Manifest struct {
	Kind, Name string
	// Pod is the template of its pods, with their namespace and labels.
	Pod  *v1.Pod
	Size int
	// Completions is for Jobs; 0 means Size.
	Completions int
}

// manifestKinds are the kinds that can be read.
var manifestKinds = []string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job", "List"}

// ReadManifests reads the objects of a YAML file, with lines in errors: pods and what creates pods.
func ReadManifests(text []byte) ([]Manifest, error) {
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var d decoder
	var out []Manifest
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		if len(doc.Content) == 1 && doc.Content[0].Tag != "!!null" {
			out = append(out, d.manifest(doc.Content[0])...)
		}
	}
	if err := joined(d.problems); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("the file has no pods, and nothing that creates pods")
	}
	return out, nil
}

// manifest reads one object.
func (d *decoder) manifest(n *yaml.Node) (out []Manifest) {
	var head struct {
		Kind  string      `yaml:"kind"`
		Items []yaml.Node `yaml:"items"`
	}
	if n.Kind != yaml.MappingNode || n.Decode(&head) != nil {
		d.problem(n, "is no object of Kubernetes")
		return nil
	}
	one := Manifest{Kind: head.Kind, Size: 1}
	switch head.Kind {
	case "List":
		for i := range head.Items {
			out = append(out, d.manifest(&head.Items[i])...)
		}
		return out
	case "Pod":
		one.Pod = &v1.Pod{}
		d.strict(n, one.Pod)
		one.Name = one.Pod.Name
	case "Deployment":
		var o appsv1.Deployment
		d.strict(n, &o)
		one.of(o.Name, o.Namespace, o.Spec.Replicas, o.Spec.Template)
	case "ReplicaSet":
		var o appsv1.ReplicaSet
		d.strict(n, &o)
		one.of(o.Name, o.Namespace, o.Spec.Replicas, o.Spec.Template)
	case "StatefulSet":
		var o appsv1.StatefulSet
		d.strict(n, &o)
		one.of(o.Name, o.Namespace, o.Spec.Replicas, o.Spec.Template)
	case "Job":
		var o batchv1.Job
		d.strict(n, &o)
		one.of(o.Name, o.Namespace, o.Spec.Parallelism, o.Spec.Template)
		if c := o.Spec.Completions; c != nil {
			one.Completions = int(*c)
			one.Size = min(one.Size, one.Completions)
		}
	default:
		d.problem(n, "kind %q has no pods that can be read here; known are %s", head.Kind,
			strings.Join(manifestKinds, ", "))
		return nil
	}
	switch {
	case one.Name == "":
		d.problem(n, "%s: metadata.name is missing", one.Kind)
	case len(one.Pod.Spec.Containers) == 0:
		d.problem(n, "%s %s: the pods have no containers", one.Kind, one.Name)
	case one.Size < 0 || one.Size > maxCount:
		d.problem(n, "%s %s: must have from 0 to %d pods, has %d", one.Kind, one.Name, maxCount, one.Size)
	}
	return []Manifest{one}
}

// of takes the pods of an object that creates them.
func (m *Manifest) of(name, namespace string, size *int32, t v1.PodTemplateSpec) {
	m.Name = name
	m.Pod = &v1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	m.Pod.Namespace = namespace
	if size != nil {
		m.Size = int(*size)
	}
}

// Pods returns the pods of manifests, with names and UIDs that are unique within them.
func Pods(list []Manifest) (out []*v1.Pod) {
	for _, m := range list {
		for i := range m.Size {
			p := m.Pod.DeepCopy()
			if p.Namespace == "" {
				p.Namespace = v1.NamespaceDefault
			}
			if p.Spec.SchedulerName == "" {
				p.Spec.SchedulerName = v1.DefaultSchedulerName
			}
			p.Spec.NodeName = ""
			p.Name = m.Name
			if m.Kind != "Pod" {
				p.Name += "-" + strconv.Itoa(i)
			}
			p.UID = types.UID(strings.ToLower(m.Kind) + "/" + p.Namespace + "/" + p.Name)
			out = append(out, p)
		}
	}
	return out
}

// strict fills an object of the Kubernetes API. A problem is reported at the field that it names.
func (d *decoder) strict(n *yaml.Node, into any) {
	var plain any
	err := n.Decode(&plain)
	var text []byte
	if err == nil {
		text, err = json.Marshal(plain)
	}
	if err != nil {
		d.problem(n, "%v", err)
		return
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	for _, e := range append(unknown, err) {
		if e != nil {
			d.problem(at(n, e.Error()), "%v", e)
		}
	}
}

var quotedPath = regexp.MustCompile(`field "([^"]+)"|field [A-Za-z]+\.([A-Za-z.]+)`)

// at returns the node of the field that an error names, as far as it exists.
func at(n *yaml.Node, problem string) *yaml.Node {
	found := quotedPath.FindStringSubmatch(problem)
	if found == nil {
		return n
	}
	path := strings.FieldsFunc(found[1]+found[2], func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, step := range path {
		if n.Kind == yaml.SequenceNode {
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(n.Content) {
				return n
			}
			n = n.Content[i]
			continue
		}
		i := slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == step })
		if i < 0 || i+1 >= len(n.Content) {
			return n
		}
		if n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i]
		}
		n = n.Content[i+1]
	}
	return n
}
