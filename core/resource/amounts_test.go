// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// TestQuantitiesThatOverflowAreKnown: what upstream reads as 0 or as a negative number is recognised as too large. The
// inputs are B1 to B6 of kubernetes' known overflow bugs (kubernetes#102134 among them).
// Mutant: Quantity.Value() instead of Whole, Quantity.MilliValue() instead of Milli.
func TestQuantitiesThatOverflowAreKnown(t *testing.T) {
	for _, c := range []struct {
		text         string
		whole, milli int64
	}{
		{"50E", resource.Overflowed, resource.Overflowed},
		{"9300P", resource.Overflowed, resource.Overflowed},
		{"9223372036854775808", resource.Overflowed, resource.Overflowed},
		{"9223372036854775807", resource.Overflowed, resource.Overflowed},
		{"9223372036854775806", math.MaxInt64 - 1, resource.Overflowed},
		{"9E", 9_000_000_000_000_000_000, resource.Overflowed},
		{"10P", 10_000_000_000_000_000, resource.Overflowed},
		{"9P", 9_000_000_000_000_000, 9_000_000_000_000_000_000},
		{"1e30", resource.Overflowed, resource.Overflowed},
		{"1e1000", resource.Overflowed, resource.Overflowed},
		{"-1e30", math.MinInt64, math.MinInt64},
		{"0", 0, 0},
		{"1n", 1, 1},
		{"0.0001", 1, 1},
		{"1500m", 2, 1500},
		{"2Gi", 2 << 30, 2 << 30 * 1000},
	} {
		q := apiresource.MustParse(c.text)
		if got := resource.Whole(q); got != c.whole {
			t.Errorf("Whole(%s) = %d, want %d", c.text, got, c.whole)
		}
		if got := resource.Milli(q); got != c.milli {
			t.Errorf("Milli(%s) = %d, want %d", c.text, got, c.milli)
		}
	}
}

// TestConversionIsExact: against arbitrary precision, for quantities of every size and suffix.
func TestConversionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,24}`).Draw(t, "digits")
		suffix := rapid.SampledFrom([]string{"", "m", "k", "Ki", "Mi", "G", "Ti", "P", "Ei"}).Draw(t, "suffix")
		q, err := apiresource.ParseQuantity(digits + suffix)
		if err != nil {
			t.Fatal(err)
		}
		scale := map[string]*big.Rat{"": rat(1), "m": big.NewRat(1, 1000), "k": rat(1000), "Ki": rat(1 << 10),
			"Mi": rat(1 << 20),
			"G":  rat(1_000_000_000), "Ti": rat(1 << 40), "P": rat(1_000_000_000_000_000), "Ei": rat(1 << 60)}[suffix]
		n, _ := new(big.Int).SetString(digits, 10)
		exact := new(big.Rat).Mul(new(big.Rat).SetInt(n), scale)
		if got, want := resource.Whole(q), ceiling(exact); got != want {
			t.Fatalf("Whole(%s%s) = %d, want %d", digits, suffix, got, want)
		}
		if got, want := resource.Milli(q), ceiling(exact.Mul(exact, rat(1000))); got != want {
			t.Fatalf("Milli(%s%s) = %d, want %d", digits, suffix, got, want)
		}
	})
}

func rat(n int64) *big.Rat { return big.NewRat(n, 1) }

// ceiling rounds up and saturates.
func ceiling(r *big.Rat) int64 {
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return resource.Overflowed
	}
	return q.Int64()
}

// TestArithmeticSaturates: Add and Sub against arbitrary precision, with the ends of int64 drawn often.
// Mutant: a plain + or -.
func TestArithmeticSaturates(t *testing.T) {
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64,
		math.MaxInt64 - 1, math.MinInt64 + 1}))
	clamp := func(x *big.Int) int64 {
		switch {
		case x.IsInt64():
			return x.Int64()
		case x.Sign() > 0:
			return math.MaxInt64
		}
		return math.MinInt64
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if got, want := resource.Add(a, b), clamp(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("Add(%d, %d) = %d, want %d", a, b, got, want)
		}
		if got, want := resource.Sub(a, b), clamp(new(big.Int).Sub(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("Sub(%d, %d) = %d, want %d", a, b, got, want)
		}
	})
}

// TestWhichNamesCount: the names that upstream counts as scalar resources, and those that it leaves out.
// Mutant: every name with a slash is extended.
func TestWhichNamesCount(t *testing.T) {
	for name, want := range map[v1.ResourceName][2]bool{ // name -> is scalar, is extended
		"example.com/gpu":                {true, true},
		"hugepages-2Mi":                  {true, false},
		"attachable-volumes-csi-x":       {true, false},
		"kubernetes.io/special":          {true, false},
		"sub.kubernetes.io/special":      {true, false},
		"requests.example.com/gpu":       {false, false},
		"cpu":                            {false, false},
		"gpu":                            {false, false},
		"example.com/":                   {false, false},
		"example.com/not a name":         {false, false},
		v1.ResourceName("x/" + long(64)): {false, false},
		v1.ResourceName("x/" + long(63)): {true, true},
	} {
		if got := resource.IsScalar(name); got != want[0] {
			t.Errorf("IsScalar(%q) = %v", name, got)
		}
		if got := resource.IsExtended(name); got != want[1] {
			t.Errorf("IsExtended(%q) = %v", name, got)
		}
	}
}

func long(n int) string {
	return fmt.Sprintf("%0*d", n, 0)
}

// TestAmountsByName: a list comes back by name, sorted, absent as 0, and absent told from an explicit 0.
func TestAmountsByName(t *testing.T) {
	a := resource.FromList(v1.ResourceList{
		"cpu": apiresource.MustParse("1500m"), "memory": apiresource.MustParse("1Gi"),
		"ephemeral-storage": apiresource.MustParse("2Gi"),
		"pods":              apiresource.MustParse("10"), "z.example/b": apiresource.MustParse("2"),
		"a.example/b": apiresource.MustParse("0"), "nonsense": apiresource.MustParse("1"),
	})
	for name, want := range map[v1.ResourceName]int64{"cpu": 1500, "memory": 1 << 30, "ephemeral-storage": 2 << 30,
		"pods": 10, "z.example/b": 2, "a.example/b": 0, "nonsense": 0} {
		if got := a.Get(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if len(a.Scalars) != 2 || a.Scalars[0].Name != "a.example/b" {
		t.Errorf("scalars %v", a.Scalars)
	}
	if !a.Has("a.example/b") || a.Has("c.example/b") {
		t.Error("an explicit 0 and an absent name are confused")
	}
	if b := a; !a.Equal(&b) || a.IsZero() || !new(resource.Amounts).IsZero() {
		t.Error("Equal or IsZero")
	}
}

// extendedSlow is the rule with upstream's regular expressions.
func extendedSlow(name v1.ResourceName) bool {
	s := string(name)
	return strings.Contains(s, "/") && !strings.Contains(s, v1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(s, v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+s)) == 0
}

// TestExtendedNamesAsByRegularExpressions: names of every form, valid and not, have the verdict of the regular
// expressions of validation.IsQualifiedName.
func TestExtendedNamesAsByRegularExpressions(t *testing.T) {
	for _, length := range []int{62, 63, 64} {
		for _, domain := range []int{243, 244, 245} {
			name := v1.ResourceName(strings.Repeat("d", domain) + "/" + strings.Repeat("n", length))
			if got, want := resource.IsExtended(name), length <= 63 && domain <= 244; got != want ||
				want != extendedSlow(name) {
				t.Errorf("%d characters, a slash, %d more: extended %t, want %t", domain, length, got, want)
			}
		}
	}
	for _, name := range []v1.ResourceName{"a.org/x-", "a.org/-x", "a-.org/x", "-a.org/x", "a..org/x", "/x", "a.org/",
		"A.org/x", "a.org/X_y.z", "a.org/b/c", "a.org/é", "requests.a.org/x", "a.kubernetes.io/x", "gpu"} {
		if got, want := resource.IsExtended(name), name == "a.org/X_y.z"; got != want || want != extendedSlow(name) {
			t.Errorf("%q is extended: %t, want %t", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "Z", "7", "-", "_", ".", "/", "é", "\n", "\x80",
			"nvidia.com/", "kubernetes.io/", "requests.", "Gpu", "x-y"}), 0, 7).Draw(t, "pieces")
		name := v1.ResourceName(strings.Join(pieces, ""))
		if got, want := resource.IsExtended(name), extendedSlow(name); got != want {
			t.Errorf("%q is extended: %t, want %t", name, got, want)
		}
	})
}

func BenchmarkIsExtended(b *testing.B) {
	for _, c := range []struct {
		form string
		of   func(v1.ResourceName) bool
	}{{"by characters", resource.IsExtended}, {"regular expressions", extendedSlow}} {
		b.Run(c.form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.of("nvidia.com/gpu") {
					b.Fatal("nvidia.com/gpu is not extended")
				}
			}
		})
	}
}
