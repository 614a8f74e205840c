// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	kyaml "sigs.k8s.io/yaml"
)

// kind is what a template must become.
type kind struct {
	name string
	make func() any // nil for anything that the template itself names
	// parametric templates take templateParams; those that come in twos with another one do not.
	parametric bool
}

var (
	kindNode          = kind{"Node", func() any { return &v1.Node{} }, true}
	kindNamespace     = kind{"Namespace", func() any { return &v1.Namespace{} }, false}
	kindPod           = kind{"Pod", func() any { return &v1.Pod{} }, true}
	kindVolume        = kind{"PersistentVolume", func() any { return &v1.PersistentVolume{} }, false}
	kindClaim         = kind{"PersistentVolumeClaim", func() any { return &v1.PersistentVolumeClaim{} }, false}
	kindResourceClaim = kind{"ResourceClaim", func() any { return &resourcev1.ResourceClaim{} }, false}
	kindPodGroup      = kind{"PodGroup", nil, true}
	kindAny           = kind{"", nil, true}
)

// known are the kinds that a template of createAny, updateAny and churn is held to; others are taken as they are.
var known = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		resourcev1.AddToScheme, resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme, resourcev1alpha3.AddToScheme,
		schedulingv1.AddToScheme, schedulingv1beta1.AddToScheme, schedulingv1alpha3.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("scheme of the known kinds: %v", err))
		}
	}
	return s
}()

// try renders the first and the last of count objects and reads them strictly; nil when all is well.
func (t *Template) try(count int, kind kind) *Mistake {
	manifest, err := t.Parse()
	if err != nil {
		return t.mistake(err)
	}
	count = max(count, 1) // a workload without these objects still names a template that must read
	for _, index := range []int{0, count - 1} {
		text, err := manifest.Render(index, count)
		if err != nil {
			return t.mistake(err)
		}
		if err := kind.read(text); err != nil {
			line, what := place(text, err)
			return &Mistake{Path: t.Path, Line: line, What: what}
		}
	}
	return nil
}

var templateLine = regexp.MustCompile(`:(\d+)(?::\d+)?: (.*)$`)

// mistake takes the line out of an error of text/template.
func (t *Template) mistake(err error) *Mistake {
	text := strings.TrimPrefix(err.Error(), "template: "+t.Path)
	parts := templateLine.FindStringSubmatch(text)
	if parts == nil {
		return &Mistake{Path: t.Path, What: err.Error()}
	}
	line, _ := strconv.Atoi(parts[1]) // digits, as the expression says
	return &Mistake{Path: t.Path, Line: line, What: parts[2]}
}

// read decodes a rendered manifest strictly. A kind that the operation fixes is read as upstream reads it, without regard
// to upper and lower case; others meet the API server's strict field validation, which does regard it.
func (k kind) read(text []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := kyaml.Unmarshal(text, &head); err != nil {
		return err
	}
	if k.name != "" && head.Kind != "" && head.Kind != k.name {
		return fmt.Errorf("a %s stands where a %s must", head.Kind, k.name)
	}
	if k.make != nil {
		into := k.make()
		if err := kyaml.UnmarshalStrict(text, into); err != nil {
			return strictly(text, into, err)
		}
		return nil
	}
	if head.APIVersion == "" || head.Kind == "" {
		return errors.New("apiVersion and kind must both be there")
	}
	into, err := known.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return strictly(text, into, nil)
}

// strictly reads once more with the decoder that tells the path of an unknown field; otherwise is what is wrong when it
// finds nothing.
func strictly(text []byte, into any, otherwise error) error {
	asJSON, err := kyaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(asJSON, into)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return unknown[0]
	}
	return otherwise
}

var unknownField = regexp.MustCompile(`^unknown field "([^"]+)"$`)

// place returns the line of what is wrong with a manifest, 0 if it is unknown.
func place(text []byte, err error) (int, string) {
	if line, what := yamlMistake(err); line > 0 {
		return line, what
	}
	parts := unknownField.FindStringSubmatch(err.Error())
	var doc yaml.Node
	if parts == nil || yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc) != nil || len(doc.Content) == 0 {
		return 0, err.Error()
	}
	return lineOf(doc.Content[0], parts[1]), err.Error()
}

var step = regexp.MustCompile(`[^.\[\]]+`)

// lineOf follows a path such as spec.containers[0].image.
func lineOf(node *yaml.Node, path string) int {
	line := node.Line
	for _, name := range step.FindAllString(path, -1) {
		next := child(node, name)
		if next == nil {
			break
		}
		node, line = next, next.Line
	}
	return line
}

// child is the value of a field, or an entry of a list. The line of a value that is a block is that of its first line,
// so the field with a name says more: it is returned with the line of its key.
func child(node *yaml.Node, name string) *yaml.Node {
	node = target(node)
	if node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(name); err == nil && i < len(node.Content) {
			return node.Content[i]
		}
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			value := *target(node.Content[i+1])
			value.Line = node.Content[i].Line
			return &value
		}
	}
	return nil
}
