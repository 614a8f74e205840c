// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// maker makes object index of count. The objects are the caller's to change.
type maker[P any] func(index, count int) (P, error)

// copied is a pointer to a T that can copy what it points to.
type copied[T any] interface {
	*T
	DeepCopy() *T
}

// makerOf reads a template. One without actions is decoded once, which matters with tens of thousands of objects.
func makerOf[T any, P copied[T]](t *workload.Template) (maker[P], error) {
	manifest, err := t.Parse()
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", t.Path, err)
	}
	decoded := func(index, count int) (P, error) {
		text, err := manifest.Render(index, count)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", t.Path, err)
		}
		into := P(new(T))
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			return nil, fmt.Errorf("template %s: %w", t.Path, err)
		}
		return into, nil
	}
	if strings.Contains(t.Text, "{{") {
		return decoded, nil
	}
	first, err := decoded(0, 1)
	if err != nil {
		return nil, err
	}
	return func(int, int) (P, error) { return first.DeepCopy(), nil }, nil
}

// name sets a name on an object that has only a generateName, the same in every run. The names of one operation sort
// in the order of creation.
func name(o metav1.Object, op, serial int) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(fmt.Sprintf("%s%d-%05d", o.GetGenerateName(), op, serial))
		o.SetGenerateName("")
	}
}

// ownNamespace is the namespace of an operation that names none.
func (r *run) ownNamespace(given string) string {
	if given != "" {
		return given
	}
	return fmt.Sprintf("namespace-%d", r.index)
}

// ensureNamespace makes a namespace, if there is none.
func (r *run) ensureNamespace(ctx context.Context, name string) error {
	if r.namespaces[name] {
		return nil
	}
	if err := r.makeNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	r.namespaces[name] = true
	return nil
}

// makeNamespace creates a namespace, which may exist.
func (r *run) makeNamespace(ctx context.Context, ns *corev1.Namespace) error {
	if _, err := r.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", ns.Name, err)
	}
	return nil
}

// createNamespaces creates the namespaces of an operation.
func (r *run) createNamespaces(ctx context.Context, op *workload.CreateNamespaces) error {
	make := func(int, int) (*corev1.Namespace, error) { return &corev1.Namespace{}, nil }
	if op.Template != nil {
		var err error
		if make, err = makerOf[corev1.Namespace](op.Template); err != nil {
			return err
		}
	}
	err := r.each(ctx, op.Count, func(ctx context.Context, i int) error {
		ns, err := make(i, op.Count)
		if err != nil {
			return err
		}
		ns.Name = fmt.Sprintf("%s-%d", op.Prefix, i)
		return r.makeNamespace(ctx, ns)
	})
	if err != nil {
		return err
	}
	for i := range op.Count {
		r.namespaces[fmt.Sprintf("%s-%d", op.Prefix, i)] = true
	}
	return nil
}
