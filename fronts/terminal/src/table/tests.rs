use super::*;

const WIDTHS: [usize; 4] = [40, 60, 80, 120];

/// Makes a table of every kind of column, wider than any page.
fn wide() -> Table {
    let mut table = Table::new([
        Column::text("command", 12),
        Column::number("n"),
        Column::number("on large pages").spare(1),
        Column::number("resident bytes").spare(2),
        Column::number("not granted").spare(3),
        Column::words("what to do", 14),
    ]);
    for n in [1_u64, 262_144, 1_099_511_627_776] {
        table.row([
            format!("/opt/a-program-with-a-long-name --size {n} --and-more-words"),
            n.to_string(),
            "61.9 GiB   98 %".into(),
            "18446744073709551615".into(),
            "1234567".into(),
            "give the pool of 2 MiB pages as many pages as are needed".into(),
        ]);
    }
    table.apart(1);
    table
}

#[test]
fn tables_fit_the_page() {
    for columns in WIDTHS {
        let text = wide().show(Paper::plain(Some(columns)));
        let widest = text.lines().map(|line| line.width()).max();
        assert!(widest <= Some(columns), "{widest:?} of {columns} columns:\n{text}");
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn numbers_are_never_broken() {
    for columns in (1..=130).map(Some).chain([None]) {
        let text = wide().show(Paper::plain(columns));
        for number in ["1", "262144", "1099511627776"] {
            let whole = |line: &str| line.split_whitespace().any(|word| word == number);
            assert!(text.lines().any(whole), "{number} at {columns:?}:\n{text}");
        }
        // The columns of these cells may be left out.
        for (first, cell) in
            [("61.9", "61.9 GiB   98 %"), ("1844", "18446744073709551615"), ("1234", "1234567")]
        {
            assert!(!text.contains(first) || text.contains(cell), "{cell} at {columns:?}:\n{text}");
        }
    }
}

#[test]
fn missing_columns_are_named() {
    let text = wide().show(Paper::plain(Some(60)));
    assert!(text.contains("left out:") && text.contains("not granted"), "{text}");
    let text = wide().show(Paper::plain(None));
    assert!(!text.contains("left out:") && text.contains("as many pages as are needed"), "{text}");
}

#[test]
fn long_names_are_shortened() {
    let text = wide().show(Paper::plain(Some(80)));
    assert!(text.contains("..."), "{text}");
    let unicode = Paper { columns: Some(80), unicode: true, boxes: true };
    let text = wide().show(unicode);
    assert!(text.contains('…') && text.contains('─'), "{text}");
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
}

#[test]
fn wide_characters_count_twice() {
    let mut table = Table::new([Column::text("名", 4), Column::number("n")]);
    table.row(["計算計算計算計算計算", "10"]);
    let paper = Paper { columns: Some(12), unicode: true, boxes: false };
    let text = table.show(paper);
    assert!(text.lines().all(|line| line.width() <= 12) && text.contains("10"), "{text}");
}

#[test]
fn facts_stand_one_below_the_other_on_narrow_pages() {
    let pairs = [("blocks handed out", "12".to_owned()), ("blocks given back", "7".to_owned())];
    let line = |columns| facts(&pairs, Paper::plain(columns)).lines().count();
    assert_eq!([line(None), line(Some(80)), line(Some(40))], [1, 1, 2]);
}
