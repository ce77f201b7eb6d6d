"""Counts tests in Bazel's build events, and prints those that did not pass.

Usage: count_results.py CHECKS_PASSED CHECKS_FAILED EVENTS.json...
Exits 1 when anything failed or no test ran. A test that is skipped in one run and not in another counts as in the other.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

_PRECEDENCE = ['failed', 'passed', 'skipped']


def every_case_skipped(xml_path):
    try:
        cases = list(xml.etree.ElementTree.parse(xml_path).iter('testcase'))
    except (OSError, xml.etree.ElementTree.ParseError):
        return False
    return bool(cases) and all(
        case.find('skipped') is not None or case.get('result') == 'skipped'
        for case in cases)


def read_statuses(path):
    """Returns {label: 'passed' | 'failed' | 'skipped'} for the tests of one run, less those filtered out."""
    tests, statuses, xml_paths = set(), {}, {}
    with open(path, encoding='utf-8') as lines:
        events = [json.loads(line) for line in lines]
    for event in events:
        key = event['id']
        if 'targetConfigured' in key and 'testSize' in event.get('configured', {}):
            tests.add(key['targetConfigured']['label'])
        elif 'targetCompleted' in key:
            label = key['targetCompleted']['label']
            if event.get('aborted', {}).get('reason') == 'SKIPPED':
                statuses[label] = 'skipped'
            elif event.get('completed', {}).get('success'):
                # Built; without a summary as well, a tag filter kept it from running.
                statuses.setdefault(label, 'filtered')
        elif 'testResult' in key:
            for output in event.get('testResult', {}).get('testActionOutput', []):
                if output['name'] == 'test.xml':
                    url = urllib.parse.urlparse(output.get('uri', ''))
                    xml_paths.setdefault(key['testResult']['label'], []).append(
                        urllib.parse.unquote(url.path))
        elif 'testSummary' in key:
            passed = event['testSummary']['overallStatus'] in ('PASSED', 'FLAKY')
            statuses[key['testSummary']['label']] = 'passed' if passed else 'failed'
    for label, paths in xml_paths.items():
        if statuses.get(label) == 'passed' and all(map(every_case_skipped, paths)):
            statuses[label] = 'skipped'
    # What has no status at all did not build.
    statuses = {label: statuses.get(label, 'failed') for label in tests}
    return {label: status for label, status in statuses.items() if status != 'filtered'}


def main():
    passed, failed = int(sys.argv[1]), int(sys.argv[2])
    statuses = {}
    for path in sys.argv[3:]:
        for label, status in read_statuses(path).items():
            statuses[label] = min(status, statuses.get(label, status), key=_PRECEDENCE.index)
    for label, status in sorted(statuses.items()):
        if status != 'passed':
            print(f'{status}: {label}')
    counts = list(statuses.values())
    passed += counts.count('passed')
    failed += counts.count('failed')
    print(f'{passed} passed, {failed} failed, {counts.count("skipped")} skipped')
    return 1 if failed or not statuses else 0


if __name__ == '__main__':
    sys.exit(main())
