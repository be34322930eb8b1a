package mayfly

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Check reports damage of every directory that does not open with all its data, except a log whose
// end a crash may have cut off. Salvage makes a directory that Check finds sound, in which each
// item is right or belongs to a part that Salvage lists.
func TestDamageCheck(t *testing.T) {
	stores := writeDamageStores(t)
	first, last := 0, *damageCases/5
	if testing.Short() { // as in TestDamage
		last = min(last, 3)
	}
	if *damageCase >= 0 {
		first, last = *damageCase, *damageCase+1
	}
	counts := map[string]int{}
	for number := first; number < last; number++ {
		d, files := newDamaged(number, stores)
		dir := t.TempDir()
		problems := d.checkAndSalvage(t, files, dir, counts)
		if len(problems) > 0 {
			t.Errorf("%s\n%s\nagain: go test -run TestDamageCheck -damage-seed %d -damage-case %d .", d, strings.Join(problems, "\n"), *damageSeed, number)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(counts)
}

func (d *damaged) checkAndSalvage(t *testing.T, files map[string][]byte, dir string, counts map[string]int) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	checked, opens, to := filepath.Join(dir, "checked"), filepath.Join(dir, "opened"), filepath.Join(dir, "salvaged")
	for _, made := range []string{checked, opens} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(checked, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	faults, err := checkFaults(t, checked)
	if err != nil {
		report("check: %v", err)
	}
	var lost []Fault
	_, err = Salvage(t.Context(), checked, to, func(int64, int64) {}, func(f Fault) { lost = append(lost, f) })
	if err != nil {
		report("salvage: %v", err)
		return problems
	}
	for _, line := range changedFiles(files, filesOf(t, checked)) {
		report("check and salvage: %s", line)
	}

	result, _ := d.judge(files, opens)
	mayEndEarly := d.kind == "log" && d.store.Crash > 0
	switch {
	case len(faults) > 0:
		counts["check reports damage"]++
	case result == resultIntact:
		counts["check finds it sound, all right"]++
	case mayEndEarly:
		counts["check finds it sound, the log ends early after a crash"]++
	default:
		report("check reports nothing, but opening it: %s", result)
	}

	if faults, err := checkFaults(t, to); err != nil || len(faults) > 0 {
		report("check of the salvaged directory: %v %v", err, faults)
	}
	o := d.store.openDirectory(to)
	if o.err != nil {
		report("the salvaged directory does not open: %v", o.err)
		return problems
	}
	for _, err := range slices.Concat(o.before.failures, []error{o.verify, o.closed}) {
		if err != nil {
			report("the salvaged directory: %v", err)
		}
	}
	if mayEndEarly && len(d.store.prefix(o)) == 0 {
		counts["salvaged up to the end of the log"]++
		return problems
	}
	counts["salvaged"]++
	listed := func(table string) bool {
		return slices.ContainsFunc(lost, func(f Fault) bool {
			if f.File == "" && len(f.Places) == 0 { // about the content, such as a table without its description
				return f.Table == "" || f.Table == table
			}
			return slices.ContainsFunc(f.Places, func(p Place) bool { return p.Table == "" || p.Table == table })
		})
	}
	want := d.store.before.contents
	for _, name := range slices.Sorted(maps.Keys(want.Tables)) {
		if listed(name) {
			counts["tables with listed losses"]++
			continue
		}
		counts["tables that have to be whole"]++
		if o.before.Tables[name] == nil {
			report("the salvaged directory lacks table %s, and nothing is listed", name)
			continue
		}
		if lines := firstOf(unequal("table "+name, pairs(want.Tables[name].Items), pairs(o.before.Tables[name].Items))); len(lines) > 0 {
			report("nothing of table %s is listed as lost: %s", name, strings.Join(lines, "\n"))
		}
		if lines := firstOf(unequal("stream of "+name, want.Tables[name].Records, o.before.Tables[name].Records)); len(lines) > 0 {
			report("nothing of table %s is listed as lost: %s", name, strings.Join(lines, "\n"))
		}
	}
	if len(problems) > 0 {
		report("salvage lists: %v", lost)
	}
	return problems
}

func checkFaults(t *testing.T, dir string) (faults []Fault, err error) {
	err = Check(t.Context(), dir, func(int64, int64) {}, func(f Fault) { faults = append(faults, f) })
	return faults, err
}

// pairs returns the entries of a map as sorted lines.
func pairs(m map[string]string) (lines []string) {
	for key, value := range m {
		lines = append(lines, key+" "+value)
	}
	slices.Sort(lines)
	return lines
}
