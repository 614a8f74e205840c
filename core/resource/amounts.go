// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Overflowed marks a quantity that int64 cannot represent. It is larger than every real amount, so comparisons stay
// correct, but a request with it must be rejected even if the capacity is Overflowed too.
const Overflowed int64 = math.MaxInt64

// Scalar is an amount of one resource other than the four with fields of their own: an extended resource, huge
// pages of one size (bytes), attachable volumes.
type Scalar struct {
	Name  v1.ResourceName
	Value int64
}

// Amounts is a vector of resources by name, as a pod requests or a node offers them.
type Amounts struct {
	MilliCPU  int64
	Memory    int64 // bytes
	Ephemeral int64 // bytes of ephemeral storage
	Pods      int64 // number of pods; only nodes offer it
	// Scalars is sorted by name and has no duplicates. A scalar with value 0 counts as absent, except for Has.
	Scalars []Scalar
}

// FromList converts a resource list. It ignores names that are not schedulable resources (see IsScalar), like
// upstream's framework.Resource (pkg/scheduler/framework/types.go, Add).
func FromList(list v1.ResourceList) Amounts {
	var a Amounts
	for name, q := range list { // order: each name sets its own field, scalars are sorted below
		switch name {
		case v1.ResourceCPU:
			a.MilliCPU = Milli(q)
		case v1.ResourceMemory:
			a.Memory = Whole(q)
		case v1.ResourceEphemeralStorage:
			a.Ephemeral = Whole(q)
		case v1.ResourcePods:
			a.Pods = Whole(q)
		default:
			if IsScalar(name) {
				a.Scalars = append(a.Scalars, Scalar{name, Whole(q)})
			}
		}
	}
	slices.SortFunc(a.Scalars, func(x, y Scalar) int { return strings.Compare(string(x.Name), string(y.Name)) })
	return a
}

// Get returns the amount of a resource, 0 if it is absent.
func (a *Amounts) Get(name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return a.MilliCPU
	case v1.ResourceMemory:
		return a.Memory
	case v1.ResourceEphemeralStorage:
		return a.Ephemeral
	case v1.ResourcePods:
		return a.Pods
	}
	i, ok := a.find(name)
	if !ok {
		return 0
	}
	return a.Scalars[i].Value
}

// Has reports whether a scalar is listed, even with 0.
func (a *Amounts) Has(name v1.ResourceName) bool {
	_, ok := a.find(name)
	return ok
}

func (a *Amounts) find(name v1.ResourceName) (int, bool) {
	return slices.BinarySearchFunc(a.Scalars, name, func(s Scalar, n v1.ResourceName) int {
		return strings.Compare(string(s.Name), string(n))
	})
}

// Equal reports whether both have the same amounts under the same names.
func (a *Amounts) Equal(b *Amounts) bool {
	return a.MilliCPU == b.MilliCPU && a.Memory == b.Memory && a.Ephemeral == b.Ephemeral && a.Pods == b.Pods &&
		slices.Equal(a.Scalars, b.Scalars)
}

// IsZero reports whether all amounts are 0.
func (a *Amounts) IsZero() bool {
	if a.MilliCPU != 0 || a.Memory != 0 || a.Ephemeral != 0 || a.Pods != 0 {
		return false
	}
	for _, s := range a.Scalars {
		if s.Value != 0 {
			return false
		}
	}
	return true
}

// Whole returns the quantity in whole units, rounded up. It returns Overflowed if int64 cannot represent it, and
// math.MinInt64 for its negative counterpart.
func Whole(q apiresource.Quantity) int64 { return scaled(q, 0) }

// Milli returns the quantity in thousandths, rounded up; it saturates like Whole.
func Milli(q apiresource.Quantity) int64 { return scaled(q, apiresource.Milli) }

// The limits of what Quantity.ScaledValue computes without overflow.
var (
	largestWhole  = *apiresource.NewQuantity(math.MaxInt64-1, apiresource.DecimalSI)
	largestMilli  = *apiresource.NewMilliQuantity(math.MaxInt64-1, apiresource.DecimalSI)
	smallestWhole = *apiresource.NewQuantity(-math.MaxInt64, apiresource.DecimalSI)
	smallestMilli = *apiresource.NewMilliQuantity(-math.MaxInt64, apiresource.DecimalSI)
)

func scaled(q apiresource.Quantity, scale apiresource.Scale) int64 {
	// Most quantities fit by a wide margin; the comparison below uses arbitrary precision and is slow.
	const small = math.MaxInt64 / 1000
	if v, ok := q.AsInt64(); ok && v < small && v > -small {
		if scale == apiresource.Milli {
			return v * 1000
		}
		return v
	}
	top, bottom := &largestWhole, &smallestWhole
	if scale == apiresource.Milli {
		top, bottom = &largestMilli, &smallestMilli
	}
	switch {
	case q.Cmp(*top) > 0:
		return Overflowed
	case q.Cmp(*bottom) < 0:
		return math.MinInt64
	}
	return q.ScaledValue(scale)
}

// Add returns a+b; it saturates at the limits of int64.
func Add(a, b int64) int64 {
	s := a + b
	if a > 0 && b > 0 && s < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && s >= 0 {
		return math.MinInt64
	}
	return s
}

// Sub returns a-b; it saturates at the limits of int64.
func Sub(a, b int64) int64 {
	if b == math.MinInt64 {
		return Add(Add(a, math.MaxInt64), 1)
	}
	return Add(a, -b)
}

// IsScalar reports whether the scheduler counts a resource of this name besides CPU, memory, ephemeral storage and
// pods: extended resources, huge pages, names in a kubernetes.io domain, attachable volumes (upstream:
// pkg/scheduler/util, IsScalarResourceName).
func IsScalar(name v1.ResourceName) bool {
	s := string(name)
	return strings.HasPrefix(s, v1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, v1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		IsExtended(name)
}

// IsExtended reports whether name is an extended resource: a qualified name outside kubernetes.io that is still
// qualified with the prefix "requests." of quota. Scorers and plugins ask it in each attempt, so it has no regular
// expression; the tests compare it with validation.IsQualifiedName.
func IsExtended(name v1.ResourceName) bool {
	s := string(name)
	domain, local, is := strings.Cut(s, "/")
	return is && !strings.Contains(s, v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(s, v1.DefaultResourceRequestsPrefix) &&
		len(v1.DefaultResourceRequestsPrefix)+len(domain) <= validation.DNS1123SubdomainMaxLength &&
		isSubdomain(domain) && isLocalName(local)
}

// longestLocalName is the largest length of the part of a qualified name behind the slash.
const longestLocalName = 63

// isSubdomain reports whether s is parts joined by dots, each of lower-case letters, digits and, inside of it, dashes.
func isSubdomain(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !joined(part, "-", isLower) {
			return false
		}
	}
	return true
}

// isLocalName reports whether s is letters, digits and, inside of it, dashes, underscores and dots.
func isLocalName(s string) bool {
	return len(s) <= longestLocalName &&
		joined(s, "-_.", func(c byte) bool { return isLower(c) || 'A' <= c && c <= 'Z' })
}

// joined reports whether s begins and ends with characters of a kind, and has in between also some of others.
func joined(s, others string, kind func(byte) bool) bool {
	for i := range len(s) {
		if !kind(s[i]) && (i == 0 || i == len(s)-1 || strings.IndexByte(others, s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

// isLower reports whether c is a lower-case letter or a digit.
func isLower(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
