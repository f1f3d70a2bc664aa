//! Enums whose values are words of files and reports, so that each word is written once, beside its value.

/// Declares such an enum, with a method that returns the word of a value: `as_str`, or the one named first. With
/// `const ALL;` behind the method, the enum has a list of its values.
macro_rules! words {
    (
        fn $method:ident; const ALL;
        $(#[$meta:meta])* $visible:vis enum $name:ident { $($(#[$of_value:meta])* $value:ident = $word:literal),+ $(,)? }
    ) => {
        $crate::platform::words! {
            fn $method;
            $(#[$meta])* $visible enum $name { $($(#[$of_value])* $value = $word),+ }
        }

        impl $name {
            /// All values.
            $visible const ALL: [Self; [$($name::$value),+].len()] = [$($name::$value),+];
        }
    };
    (
        fn $method:ident;
        $(#[$meta:meta])* $visible:vis enum $name:ident { $($(#[$of_value:meta])* $value:ident = $word:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        $visible enum $name { $($(#[$of_value])* $value),+ }

        impl $name {
            /// Its word in files and reports.
            $visible fn $method(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }
        }
    };
    ($($declared:tt)+) => {
        $crate::platform::words! { fn as_str; $($declared)+ }
    };
}
pub(crate) use words;
